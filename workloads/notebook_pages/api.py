"""Notebooks over the API: launching, following, stopping, starting again, keeping, removing."""

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request as Call
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from accounts.replay import Answer, answer_once
from notebooks.models import NotebookServer
from notebooks.servers import actions
from notebooks.servers.states import LIVE
from provisioning.desired.variables import SecretVariable
from workloads.notebook_pages.serializers import (
    KeepSerializer,
    LaunchSerializer,
    NotebookQuery,
    NotebookSerializer,
    NotebookShortSerializer,
    StartAgainSerializer,
)
from workloads.notebook_pages.shown import seen_server
from workloads.runs.api import as_missing


class NotebookEndpoint(mixins.ListModelMixin, Endpoint):
    """Notebook servers of one's teams."""

    queryset = NotebookServer.objects.none()
    serializer_class = NotebookSerializer
    lookup_value_converter = "int"
    ordering = "-id"
    asks = {"list": NotebookQuery}
    keyed = frozenset({"launch"})
    asking = frozenset({"launch", "start", "stop"})
    bodyless = frozenset({"destroy", "exemption", "stop"})

    def get_queryset(self) -> QuerySet[NotebookServer]:
        """Those of one's own teams; all of them for leads and auditors."""
        rows = NotebookServer.objects.visible_to(self.request.user)
        return rows.described().select_related("tenancy__cluster__hub")

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        """Short in a list."""
        return NotebookShortSerializer if self.action == "list" else NotebookSerializer

    def get_serializer_context(self) -> dict[str, Any]:
        """With the time that costs are told for, and whom."""
        return {
            **super().get_serializer_context(),
            "now": timezone.now(),
            "by": self.request.user,
        }

    def filter_queryset(self, queryset: Any) -> Any:
        """What was asked for in the address."""
        asked = getattr(self, "asked", {})
        names = {"team": "team__slug", "state": "state"}
        queryset = queryset.filter(
            **{names[key]: asked[key] for key in names if key in asked}
        )
        if "live" in asked:
            live = sorted(LIVE)
            queryset = (
                queryset.filter(state__in=live)
                if asked["live"] == "true"
                else queryset.exclude(state__in=live)
            )
        return queryset.filter(owner=self.caller) if "mine" in asked else queryset

    @extend_schema(responses=NotebookSerializer)
    def retrieve(self, call: Call, pk: int) -> Response:
        """One notebook: why it is not there yet, what it costs, since when nobody uses it, and when it ends."""
        return Response(self._full(self.get_object()))

    @extend_schema(
        operation_id="notebooks_launch",
        request=LaunchSerializer,
        responses={201: NotebookSerializer},
    )
    def launch(self, call: Call, pk: int) -> Response:
        """Launch a notebook in a namespace of one's own team; a worker has its hub start it within seconds."""
        said = self.body(LaunchSerializer)
        return answer_once(call, lambda: self._launch(pk, said))

    @extend_schema(request=None, responses=NotebookSerializer)
    @action(detail=True, methods=["post"])
    def stop(self, call: Call, pk: int) -> Response:
        """Stop a notebook: what it has in memory is lost, its volumes stay.

        Asked again while it stops it is the same.
        """
        actions.stop(self.get_object().pk, by=self.caller, now=timezone.now())
        return Response(self._full(self.get_object()))

    @extend_schema(request=StartAgainSerializer, responses=NotebookSerializer)
    @action(detail=True, methods=["post"])
    def start(self, call: Call, pk: int) -> Response:
        """Start a stopped notebook again with its choices; one that runs is left alone."""
        server, said = self.get_object(), self.body(StartAgainSerializer).get("secrets")
        secrets = None if said is None else [*map(SecretVariable.of, said)]
        actions.start(server.pk, by=self.caller, now=timezone.now(), secrets=secrets)
        return Response(self._full(self.get_object()))

    @extend_schema(request=KeepSerializer, responses=NotebookSerializer)
    @action(detail=True, methods=["post"])
    def keep(self, call: Call, pk: int) -> Response:
        """Leave a notebook alone though nobody uses it: for two hours, or until a moment that a platform lead names."""
        server, said = self.get_object(), self.body(KeepSerializer)
        now, reason, until = timezone.now(), said.get("reason", ""), said.get("until")
        if until is None:
            actions.keep(server.pk, by=self.caller, now=now, reason=reason)
        else:
            actions.exempt(
                server.pk, until=until, reason=reason, by=self.caller, now=now
            )
        return Response(self._full(self.get_object()))

    @extend_schema(request=None, responses={200: NotebookSerializer})
    @action(detail=True, methods=["delete"])
    def exemption(self, call: Call, pk: int) -> Response:
        """End the exemption of a notebook from idle stops (platform leads). Asked twice it is the same."""
        actions.end_exemption(self.get_object().pk, by=self.caller, now=timezone.now())
        return Response(self._full(self.get_object()))

    @extend_schema(request=None, responses={204: None})
    def destroy(self, call: Call, pk: int) -> Response:
        """Forget a stopped notebook; its volumes stay."""
        actions.remove(self.get_object().pk, by=self.caller)
        return Response(status=204)

    def _launch(self, tenancy: int, said: dict[str, Any]) -> Answer:
        with as_missing(tenancy, to=self.caller):
            server = actions.launch(
                tenancy,
                said["profile"],
                said.get("options", {}),
                by=self.caller,
                key=str(self.request.headers.get("Idempotency-Key", "")),
                now=timezone.now(),
                title=said.get("title", ""),
                secrets=[SecretVariable.of(one) for one in said.get("secrets", ())],
            )
        row = self.get_queryset().get(pk=server.pk)
        return Answer(self._full(row), 201, f"/api/v1/notebooks/{row.pk}/")

    def _full(self, server: NotebookServer) -> dict[str, Any]:
        server.seen = seen_server(server, by=self.caller, now=timezone.now())  # type: ignore[attr-defined]
        return self.shown(server, NotebookSerializer)
