"""The onboarding package as a Django app."""

from django.apps import AppConfig


class OnboardingConfig(AppConfig):
    name = "onboarding"
