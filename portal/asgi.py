"""The ASGI entry point: pages, API and event stream in one server (`gunicorn -k portal.web_worker.BoundedWorker`)."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django_application = get_asgi_application()

from portal.http.bodies import BoundedBodies  # noqa: E402 - needs the applications that have just been loaded

application = BoundedBodies(django_application)
