"""Where the pages of work live."""

from django.urls import path

from workloads import views

urlpatterns = [path("teams/<slug:slug>/work", views.work, name="work")]
