"""Templates of runs over the API: what they ask, and keeping them as platform leads do."""

from typing import Any

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.request import Request as Call
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from web.strict import with_places
from workloads.template_desk import actions
from workloads.template_desk.kept import Kept, kept_as, require_lead, written
from workloads.template_desk.offered import offered
from workloads.template_desk.serializers import (
    KeepTemplateSerializer,
    KeptTemplateSerializer,
    RunTemplatesSerializer,
    TakeBackTemplateSerializer,
    TemplatesYamlInSerializer,
    TemplatesYamlSerializer,
)


class TemplateEndpoint(Endpoint):
    """Templates of runs."""

    serializer_class = KeptTemplateSerializer
    lookup_field = "slug"
    lookup_value_converter = "slug"

    @extend_schema(operation_id="templates", responses=RunTemplatesSerializer)
    def list(self, call: Call) -> Response:
        """Every template that is offered, with what it asks for; the platform team's own come first."""
        return Response(
            self.shown({"results": [*offered().values()]}, RunTemplatesSerializer)
        )

    @extend_schema(responses=KeptTemplateSerializer)
    def retrieve(self, call: Call, slug: str) -> Response:
        """A template with its document and its versions (platform leads)."""
        require_lead(self.caller)
        return Response(self._shown(slug))

    @extend_schema(request=KeepTemplateSerializer, responses=KeptTemplateSerializer)
    def update(self, call: Call, slug: str) -> Response:
        """Offer a template as a document says it, from the next run on (platform leads).

        The same document again changes nothing. The slug of a shipped template takes its place.
        """
        require_lead(self.caller)
        body = self.body(KeepTemplateSerializer)
        said = body.pop("yaml", None) or body.pop("document", None) or {}
        field = "yaml" if isinstance(said, str) else "document"
        with_places(
            field,
            lambda: actions.keep(
                said, by=self.caller, now=timezone.now(), slug=slug, **body
            ),
        )
        return Response(self._shown(slug))

    @extend_schema(request=TakeBackTemplateSerializer, responses=KeptTemplateSerializer)
    def take_back(self, call: Call, slug: str) -> Response:
        """Offer a template no longer, also one that came with the product; its runs go on (platform leads)."""
        require_lead(self.caller)
        self._kept(slug)
        actions.take_back(
            slug,
            by=self.caller,
            now=timezone.now(),
            **self.body(TakeBackTemplateSerializer),
        )
        return Response(self._shown(slug))

    def _kept(self, slug: str) -> Kept:
        found = kept_as(slug)
        if found is None:
            raise NotFound
        return found

    def _shown(self, slug: str) -> dict[str, Any]:
        return self.shown(self._kept(slug), KeptTemplateSerializer)


class TemplateYamlEndpoint(Endpoint):
    """Templates of runs as one YAML file, for keeping them in Git."""

    serializer_class = TemplatesYamlSerializer

    @extend_schema(
        operation_id="templates_yaml",
        responses={
            (200, "application/json"): TemplatesYamlSerializer,
            (200, "text/yaml"): str,
        },
    )
    def list(self, call: Call) -> Response | HttpResponse:
        """The platform team's own templates; plain YAML with `Accept: text/yaml` (platform leads)."""
        require_lead(self.caller)
        text = written()
        if "text/yaml" in call.headers.get("Accept", ""):
            return HttpResponse(text, content_type="text/yaml; charset=utf-8")
        return Response({"yaml": text})

    @extend_schema(
        operation_id="templates_yaml_put",
        request=TemplatesYamlInSerializer,
        responses=TemplatesYamlSerializer,
    )
    def update(self, call: Call) -> Response:
        """Offer every template of a file, all or none; those that it does not name stay (platform leads)."""
        require_lead(self.caller)
        body = self.body(TemplatesYamlInSerializer)
        with_places(
            "yaml",
            lambda: actions.take_in(
                body["yaml"],
                by=self.caller,
                now=timezone.now(),
                why=body.get("why", ""),
            ),
        )
        return Response({"yaml": written()})
