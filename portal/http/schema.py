"""The API's description: what every operation takes and can answer, its problems among it."""

from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from portal.http.problems import MEDIA_TYPE, TITLES
from web.filtering import query_of

# Where the description has no address: what is answered there is the receiver's.
OF_A_WEBHOOK = "/"
ALWAYS = ("400", "401", "403", "404", "429", "503")
CHANGING = ("408", "409", "413", "415", "422")
GUARDED = ("412", "428")
KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    required=True,
    pattern=r"^[\x21-\x7e]{1,255}$",
    description="New for each thing you want done; the same key and body again give the first answer again.",
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    required=True,
    description="The ETag as you saw it: 428 without it, 412 when it has changed since.",
)


class ProblemErrorSerializer(serializers.Serializer[Any]):
    """One value that cannot be taken."""

    pointer = serializers.CharField(
        help_text="JSON pointer (RFC 6901) to the value in the body."
    )
    code = serializers.CharField()
    detail = serializers.CharField()


class ProblemSerializer(serializers.Serializer[Any]):
    """Why a call was refused (RFC 9457)."""

    type = serializers.CharField(help_text="Where the code is explained.")
    title = serializers.CharField()
    status = serializers.IntegerField()
    code = serializers.CharField(help_text="For machines; see /api/problems.")
    detail = serializers.CharField(
        help_text="For people: what was wrong and what to do."
    )
    instance = serializers.CharField()
    errors = ProblemErrorSerializer(many=True)  # type: ignore[assignment]
    request_id = serializers.CharField()


REPLAYED = {
    "description": "`true` where this is the first answer to the key again.",
    "schema": {"type": "string"},
}
LOCATION = {
    "description": "The address of what was made, where it has one.",
    "schema": {"type": "string"},
}
RETRY_AFTER = {"description": "In so many seconds.", "schema": {"type": "integer"}}


class ProblemAutoSchema(AutoSchema):
    """Adds to each operation its parameters, its headers and every problem it can answer with.

    A view says so with `asks` (action: serializer of the parameters), `keyed` (actions that need an
    Idempotency-Key), `guarded` (actions that need If-Match) and `refuses_values` (actions that only read, and whose
    parameters may name what is not there), `conflicting` (actions that only read, and may not as things stand) and
    `versioned` (actions whose body may say which version was seen).
    """

    def get_override_parameters(self) -> list[Any]:
        """The parameters behind the question mark, and the headers."""
        query = query_of(self.view)
        found: list[Any] = [query] if query().fields else []
        found += [KEY] if self._is_among("keyed") else []
        found += [IF_MATCH] if self._is_among("guarded") else []
        return found

    def get_tags(self) -> list[str]:
        """The first part of the path, which is the kind of thing."""
        parts = self.path.removeprefix("/api/v1/").strip("/").split("/")
        return [parts[0] or ("webhooks" if self.path == OF_A_WEBHOOK else "api")]

    def _is_list_view(self, serializer: Any = None) -> bool:
        """Only what takes a cursor answers with pages."""
        return "cursor" in query_of(self.view)().fields

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        if self.path == OF_A_WEBHOOK:
            return bodies
        for status in self._problems():
            bodies[status] = self._get_response_for_code(  # type: ignore[no-untyped-call]
                ProblemSerializer, status, media_types=[MEDIA_TYPE]
            ) | {"description": TITLES[int(status)]}
        for status, body in bodies.items():
            if headers := self._headers_of(status):
                body["headers"] = {**body.get("headers", {}), **headers}
        return bodies

    def _headers_of(self, status: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if status in ("429", "503"):
            found["Retry-After"] = RETRY_AFTER
        if status == "201":
            found["Location"] = LOCATION
        if status.startswith("2") and self._is_among("keyed"):
            found["Idempotency-Replayed"] = REPLAYED
        return found

    def _problems(self) -> list[str]:
        found = [*ALWAYS]
        if self.method != "GET":
            found += CHANGING
        elif self._is_among("refuses_values"):
            found.append("422")
        if self.method == "GET" and self._is_among("conflicting"):
            found.append("409")
        if self._is_among("versioned"):
            found.append("412")
        if self._is_among("guarded"):
            found += GUARDED
        if self._is_among("outside"):
            found.append("502")
        return sorted(found)

    def _is_among(self, name: str) -> bool:
        return getattr(self.view, "action", None) in getattr(self.view, name, ())
