"""A peer of B8: one view of Django REST framework that looks up a token, spends a budget and keeps a row, no more."""

import os

from django.conf import settings

settings.configure(
    SECRET_KEY="bench-only-" + "k" * 50,
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": "127.0.0.1",
            "PORT": os.environ.get("PLAIN_PORT", ""),
            "NAME": os.environ.get("PLAIN_DATABASE", ""),
            "USER": os.environ.get("PLAIN_USER", ""),
            "CONN_MAX_AGE": None,
        }
    },
    REST_FRAMEWORK={
        "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
        "UNAUTHENTICATED_USER": None,
    },
    USE_TZ=True,
)

import django  # noqa: E402

django.setup()

from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import connection, transaction  # noqa: E402
from django.urls import path  # noqa: E402
from rest_framework import serializers  # noqa: E402
from rest_framework.authentication import BaseAuthentication  # noqa: E402
from rest_framework.exceptions import AuthenticationFailed  # noqa: E402
from rest_framework.request import Request  # noqa: E402
from rest_framework.response import Response  # noqa: E402
from rest_framework.views import APIView  # noqa: E402

from bench.plain_sql import KEEP, KNOWN, SPEND, digest_of  # noqa: E402


class Token(BaseAuthentication):
    """Whoever sends a token that is known."""

    def authenticate(self, request: Request) -> tuple[int, None]:
        """The number of the person; raises AuthenticationFailed."""
        secret = request.headers.get("Authorization", "").removeprefix("Bearer ")
        with connection.cursor() as cursor:
            cursor.execute(KNOWN, [digest_of(secret)])
            found = cursor.fetchone()
        if found is None:
            raise AuthenticationFailed
        return found[0], None


class AskSerializer(serializers.Serializer[None]):
    """What somebody asks for."""

    budget = serializers.IntegerField()
    gpus = serializers.IntegerField(min_value=1)
    until = serializers.DateTimeField()
    reason = serializers.CharField(max_length=2_000)


class Asks(APIView):
    """Where they ask."""

    authentication_classes = [Token]

    def post(self, request: Request) -> Response:
        """Grant what the budget pays for, and keep it with the answer."""
        asked = AskSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        said = asked.validated_data
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(SPEND, [said["gpus"], said["budget"], said["gpus"]])
            is_granted = cursor.rowcount == 1
            values = [
                said["budget"],
                request.user,
                said["gpus"],
                said["until"],
                said["reason"],
                is_granted,
            ]
            cursor.execute(KEEP, values)
            [number] = cursor.fetchone()
        return Response(
            {
                "id": number,
                "state": "approved" if is_granted else "waiting",
                **asked.data,
            },
            status=201,
        )


class Health(APIView):
    """Whether it answers."""

    def get(self, request: Request) -> Response:
        """It does."""
        return Response({})


urlpatterns = [path("asks/", Asks.as_view()), path("healthz", Health.as_view())]
application = get_wsgi_application()
