"""The workloads package as a Django app."""

from django.apps import AppConfig


class WorkloadsConfig(AppConfig):
    name = "workloads"
