"""Where the pages of audit live."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
