"""The project: settings, addresses and entry points. Its Celery app is everybody's: who rings must know the broker."""

from portal.celery import app as celery_app

__all__ = ["celery_app"]
