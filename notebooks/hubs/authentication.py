"""How a hub proves to the portal that it is one: by its key, which opens one address and nothing else."""

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from notebooks.hubs.keys import opens, prefix_of
from notebooks.hubs.models import Hub
from web.throttling import seconds_to_wait

if TYPE_CHECKING:  # the framework's views import this module through the settings
    from rest_framework.views import APIView

NO_HUB = "0" * 64


class HubKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer qmh_…`: neither sessions nor tokens of people count."""

    def authenticate(self, request: Request) -> tuple[AnonymousUser, Hub] | None:
        """Nobody in person, and the hub; None without the header; raises AuthenticationFailed."""
        header = request.headers.get("Authorization", "")
        if not header:
            return None
        scheme, _, text = header.partition(" ")
        prefix = prefix_of(text) if scheme.lower() == "bearer" else ""
        hub = (
            Hub.objects.select_related("cluster").filter(key_prefix=prefix).first()
            if prefix
            else None
        )
        is_right = opens(text, hub.key_digest if hub else NO_HUB)
        if hub is None or not is_right:
            raise AuthenticationFailed("This is no hub's key, or one that has ended.")
        return AnonymousUser(), hub

    def authenticate_header(self, request: Request) -> str:
        """What a 401 asks for."""
        return 'Bearer realm="quartermaster"'


class CalledByHub(BasePermission):
    """A hub calls, and nobody else."""

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """Whether the key of a hub came with the call."""
        return isinstance(request.auth, Hub)


class HubRate(BaseThrottle):
    """As many calls for each hub as one person may read: forms and spawns of all its people come from one address."""

    until = 0.0

    def allow_request(self, request: Request, view: "APIView") -> bool:
        """Whether the call is within the limit, which it counts towards."""
        self.until = seconds_to_wait(
            "hub", request.auth.pk, rate=settings.RATES["read"]
        )
        return not self.until

    def wait(self) -> float:
        """Seconds until the next window."""
        return self.until


class HubKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The OpenAPI description of a hub's key."""

    target_class = "notebooks.hubs.authentication.HubKeyAuthentication"
    name = "hubKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """An HTTP bearer scheme."""
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A JupyterHub's key (qmh_…).",
        }
