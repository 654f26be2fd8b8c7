"""Celery's settings as module names, read from Django's settings so that there is one source."""

from django.conf import settings

globals().update(settings.CELERY)
