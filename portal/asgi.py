"""The ASGI entry point: pages, API and event stream in one server (`gunicorn -k portal.web_worker.BoundedWorker`)."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
django.setup(set_prefix=False)

# These need the applications that have just been loaded.
from portal import garbage  # noqa: E402
from portal.http.bodies import BoundedBodies  # noqa: E402
from portal.http.handler import OneThreadHandler  # noqa: E402

application = BoundedBodies(OneThreadHandler())
garbage.settle()
