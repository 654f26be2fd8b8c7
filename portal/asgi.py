"""The ASGI entry point: pages, API and event stream in one server (`gunicorn -k asgi`)."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
application = get_asgi_application()
