"""Profiles of notebook servers over the API: which there are, and maintaining them as platform leads do."""

from collections.abc import Callable
from typing import Any

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.request import Request as Call
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from notebooks.models import Profile
from notebooks.profile_desk import actions
from notebooks.profile_desk.kept import (
    kept_as,
    missing_in,
    offered,
    require_lead,
    written,
)
from notebooks.profile_desk.serializers import (
    EndProfileSerializer,
    KeptProfileSerializer,
    ProfilesSerializer,
    ProfilesYamlInSerializer,
    ProfilesYamlSerializer,
    PublishProfileSerializer,
    SaveProfileSerializer,
)
from web.strict import with_places


class ProfileEndpoint(Endpoint):
    """Profiles of notebook servers."""

    serializer_class = KeptProfileSerializer
    lookup_field = "slug"
    lookup_value_converter = "slug"

    @extend_schema(operation_id="profiles", responses=ProfilesSerializer)
    def list(self, call: Call) -> Response:
        """Every profile that people can choose, in their order; deprecated ones with the reason."""
        found = sorted(
            offered(), key=lambda one: (one.document.order, one.document.slug)
        )
        return Response(self.shown({"results": found}, ProfilesSerializer))

    @extend_schema(responses=KeptProfileSerializer)
    def retrieve(self, call: Call, slug: str) -> Response:
        """A profile with its state, its versions and what keeps it from being published (platform leads)."""
        require_lead(self.caller)
        return Response(self._shown(slug))

    @extend_schema(request=SaveProfileSerializer, responses=KeptProfileSerializer)
    def update(self, call: Call, slug: str) -> Response:
        """Keep a profile as a document says it, as a draft that nobody gets before it is published (platform leads).

        The same document again changes nothing.
        """
        require_lead(self.caller)
        body = self.body(SaveProfileSerializer)
        document = body.pop("yaml", None) or body.pop("document", None) or {}
        field = "yaml" if isinstance(document, str) else "document"
        with_places(
            field,
            lambda: actions.save(
                document, by=self.caller, now=timezone.now(), slug=slug, **body
            ),
        )
        return Response(self._shown(slug))

    @extend_schema(request=PublishProfileSerializer, responses=KeptProfileSerializer)
    def publish(self, call: Call, slug: str) -> Response:
        """Let people choose a profile in its newest version, also one that was deprecated (platform leads)."""
        return self._act(slug, PublishProfileSerializer, actions.publish)

    @extend_schema(request=EndProfileSerializer, responses=KeptProfileSerializer)
    def deprecate(self, call: Call, slug: str) -> Response:
        """Advise people against a profile, who can still choose it (platform leads)."""
        return self._act(slug, EndProfileSerializer, actions.deprecate)

    @extend_schema(request=EndProfileSerializer, responses=KeptProfileSerializer)
    def retire(self, call: Call, slug: str) -> Response:
        """Take a draft or a deprecated profile away for good; servers that run stay (platform leads)."""
        return self._act(slug, EndProfileSerializer, actions.retire)

    def _act(
        self,
        slug: str,
        serializer: type[PublishProfileSerializer] | type[EndProfileSerializer],
        act: Callable[..., Profile],
    ) -> Response:
        require_lead(self.caller)
        if kept_as(slug) is None:
            raise NotFound
        body = self.body(serializer)
        with_places("document", lambda: act(slug, by=self.caller, **body))
        return Response(self._shown(slug))

    def _shown(self, slug: str) -> dict[str, Any]:
        found = kept_as(slug)
        if found is None:
            raise NotFound
        missing = [
            {"place": place, "detail": what} for place, what in missing_in(found)
        ]
        row = {
            name: getattr(found, name)
            for name in ("slug", "profile", "number", "newest", "versions")
        }
        return self.shown({**row, "missing": missing}, KeptProfileSerializer)


class ProfileYamlEndpoint(Endpoint):
    """Profiles as KubeSpawner's `profile_list`, for keeping them in Git."""

    serializer_class = ProfilesYamlSerializer

    @extend_schema(
        operation_id="profiles_yaml",
        responses={
            (200, "application/json"): ProfilesYamlSerializer,
            (200, "text/yaml"): str,
        },
    )
    def list(self, call: Call) -> Response | HttpResponse:
        """The newest version of each that is not retired; plain YAML with `Accept: text/yaml` (platform leads)."""
        require_lead(self.caller)
        text = written()
        if "text/yaml" in call.headers.get("Accept", ""):
            return HttpResponse(text, content_type="text/yaml; charset=utf-8")
        return Response({"yaml": text})

    @extend_schema(
        operation_id="profiles_yaml_put",
        request=ProfilesYamlInSerializer,
        responses=ProfilesYamlSerializer,
    )
    def update(self, call: Call) -> Response:
        """Keep every profile of a file as a draft, all or none; those that it does not name stay (platform leads)."""
        require_lead(self.caller)
        body = self.body(ProfilesYamlInSerializer)
        with_places(
            "yaml",
            lambda: actions.take_in(
                body["yaml"],
                by=self.caller,
                now=timezone.now(),
                reason=body.get("reason", ""),
            ),
        )
        return Response({"yaml": written()})
