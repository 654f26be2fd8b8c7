"""Where the pages of notebook profiles live."""

from django.urls import path

from notebooks.profile_desk import views

urlpatterns = [
    path("profiles", views.profiles, name="profiles"),
    path("profiles/new", views.profile_new, name="profile-new"),
    path("profiles/import", views.profiles_import, name="profiles-import"),
    path("profiles/export", views.profiles_export, name="profiles-export"),
    path("profiles/<slug:slug>", views.profile, name="profile"),
    path("profiles/<slug:slug>/publish", views.profile_publish, name="profile-publish"),
    path("profiles/<slug:slug>/end", views.profile_end, name="profile-end"),
]
