"""What Backstage calls, which takes /api/backstage for the address of a plugin."""

from django.urls import path

from portal.backstage import views

urlpatterns = [
    path(".backstage/actions/v1/actions", views.actions, name="backstage-actions"),
    path(
        ".backstage/actions/v1/actions/<str:action>/invoke",
        views.invoke,
        name="backstage-invoke",
    ),
]
