"""A team's leaving: previewed, asked for, confirmed and restored by the same actions as on its pages."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.directory import freshness
from accounts.endpoints import Endpoint
from accounts.models import Team
from accounts.replay import Answer, answer_once
from approvals.versions import VersionMissing
from offboarding import actions
from offboarding import preview as previews
from offboarding.actions import Wish
from offboarding.export import export
from offboarding.models import Departure
from offboarding.plan import fingerprint
from offboarding.preview import Leaving
from offboarding.serializers import (
    ConfirmSerializer,
    DepartureSerializer,
    DepartureShortSerializer,
    LeaveSerializer,
    LeavingPreviewSerializer,
    PreviewQuery,
    ProtectionSerializer,
)
from provisioning import leaving
from provisioning.models import Tenancy
from web.strict import PageQuery

ETAG = OpenApiParameter(
    "ETag",
    str,
    OpenApiParameter.HEADER,
    response=[200],
    description="What was seen; confirming sends it back as If-Match.",
)


class DepartureEndpoint(mixins.ListModelMixin, Endpoint):
    """The departures of the teams that the caller may see."""

    queryset = Departure.objects.none()
    serializer_class = DepartureSerializer
    lookup_value_converter = "int"
    ordering = "-asked_at"
    asks = {"list": PageQuery, "preview": PreviewQuery}
    keyed = frozenset({"create", "confirm", "withdraw", "restore", "agree"})
    bodyless = frozenset({"agree", "restore", "withdraw"})
    guarded = frozenset({"confirm"})
    asking = frozenset({"create", "withdraw"})

    def get_queryset(self) -> QuerySet[Departure]:
        """Of one's own teams; all of them for leads and auditors."""
        rows = Departure.objects.visible_to(self.request.user)
        return previews.with_places(rows.select_related("asked_by", "confirmed_by"))

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        """Short in a list."""
        return (
            DepartureShortSerializer if self.action == "list" else DepartureSerializer
        )

    @extend_schema(parameters=[ETAG], responses=DepartureSerializer)
    def retrieve(self, request: Request, pk: int) -> Response:
        """One departure with its steps."""
        found = self.get_object()
        return Response(
            self.shown(found, DepartureSerializer), headers={"ETag": etag_of(found)}
        )

    @extend_schema(request=LeaveSerializer, responses={201: DepartureSerializer})
    def create(self, request: Request) -> Response:
        """Ask for a team to leave; nothing happens until a platform lead confirms."""
        said = self.body(LeaveSerializer)
        team = get_object_or_404(
            Team.objects.visible_to(self.caller), slug=said["team"]
        )

        def effect() -> Answer:
            made = actions.ask(
                team, wish_of(team, said), by=self.caller, now=timezone.now()
            )
            return Answer(
                self.shown(self._again(made.pk), DepartureSerializer),
                201,
                f"/api/v1/departures/{made.pk}/",
            )

        return answer_once(request, effect)

    @extend_schema(
        operation_id="departures_preview", responses=LeavingPreviewSerializer
    )
    @action(detail=False, methods=["get"])
    def preview(self, request: Request) -> Response:
        """Everything that would go if a team left now: asks its clusters what is in its namespaces."""
        team = get_object_or_404(
            Team.objects.visible_to(self.caller), slug=self.asked["team"]
        )
        rows = (
            Tenancy.objects.present()
            .filter(team=team)
            .select_related("cluster", "team", "project")
        )
        name = self.asked.get("cluster")
        if name:
            rows = rows.filter(cluster__name=name)
            if not rows.exists():
                raise Http404
        goes = Leaving(
            team, list(rows.order_by("cluster__name")), name is None, timezone.now()
        )
        return self._previewed(goes, previews.read_places(goes, now=timezone.now))

    @extend_schema(
        operation_id="departures_content", responses=LeavingPreviewSerializer
    )
    @action(detail=True, methods=["get"])
    def content(self, request: Request, pk: int) -> Response:
        """Everything that goes with a departure; its ETag is what confirming sends back."""
        found = self.get_object()
        return self._previewed(
            previews.of(found),
            previews.look(found, now=timezone.now),
            etag=etag_of(found),
        )

    @extend_schema(request=ConfirmSerializer, responses=DepartureSerializer)
    @action(detail=True, methods=["post"])
    def confirm(self, request: Request, pk: int) -> Response:
        """Confirm that the team leaves, with its name typed and the ETag of what was seen."""
        name, seen = self.body(ConfirmSerializer)["name"], seen_content(request)
        freshness.renew(self.caller, now=timezone.now())
        return self._change(
            lambda found: actions.confirm(
                found, name=name, seen_content=seen, by=self.caller, now=timezone.now()
            )
        )

    @extend_schema(request=None, responses=DepartureSerializer)
    @action(detail=True, methods=["post"])
    def withdraw(self, request: Request, pk: int) -> Response:
        """Take it back before it is confirmed."""
        return self._change(
            lambda found: actions.withdraw(found, by=self.caller, now=timezone.now())
        )

    @extend_schema(request=None, responses=DepartureSerializer)
    @action(detail=True, methods=["post"])
    def restore(self, request: Request, pk: int) -> Response:
        """Put everything back but the GPUs, until deleting begins."""
        return self._change(
            lambda found: actions.restore(found, by=self.caller, now=timezone.now())
        )

    @extend_schema(request=None, responses=DepartureSerializer)
    @action(detail=True, methods=["post"])
    def agree(self, request: Request, pk: int) -> Response:
        """Let it be deleted although too many would be at once."""
        return self._change(
            lambda found: actions.agree(found, by=self.caller, now=timezone.now())
        )

    @extend_schema(operation_id="departures_export", responses={200: dict[str, Any]})
    @action(detail=True, methods=["get"])
    def export(self, request: Request, pk: int) -> Response:
        """Claims, members, holdings and history, to be kept."""
        return Response(export(self.get_object(), now=timezone.now()))

    def _previewed(self, goes: Leaving, found: Any, *, etag: str = "") -> Response:
        shown = previews.preview(goes, found, now=timezone.now())
        tag = etag or f'"{fingerprint(previews.content(goes))}"'
        return Response(LeavingPreviewSerializer(shown).data, headers={"ETag": tag})

    def _change(self, change: Callable[[int], Departure]) -> Response:
        found: int = self.get_object().pk

        def effect() -> Answer:
            change(found)
            return Answer(self.shown(self._again(found), DepartureSerializer))

        return answer_once(self.request, effect)

    def _again(self, pk: int) -> Departure:
        return get_object_or_404(self.get_queryset(), pk=pk)


class ProtectionEndpoint(Endpoint):
    """Whether a place is protected from deletion."""

    queryset = Tenancy.objects.none()
    serializer_class = ProtectionSerializer

    @extend_schema(
        operation_id="tenancies_protection",
        request=ProtectionSerializer,
        responses=ProtectionSerializer,
    )
    def update(self, request: Request, pk: int) -> Response:
        """Put it on or take it off; setting what is set changes nothing."""
        said = self.body(ProtectionSerializer)
        place = get_object_or_404(Tenancy.objects.visible_to(self.caller), pk=pk)
        done = leaving.protect(place.pk, on=said["is_protected"], by=self.caller)
        return Response({"is_protected": done.is_protected})


def wish_of(team: Team, said: dict[str, Any]) -> Wish:
    """What a checked body asks for: all namespaces on these clusters, and these namespaces.

    A cluster that the team is not on, and a namespace that it has not, become a place that there is none of.
    """
    clusters, namespaces = (
        set(said.get("clusters", ())),
        set(said.get("namespaces", ())),
    )
    rows = list(Tenancy.objects.present().filter(team=team).select_related("cluster"))
    chosen = {
        row.pk
        for row in rows
        if row.cluster.name in clusters or row.namespace in namespaces
    }
    unknown = clusters - {row.cluster.name for row in rows} or namespaces - {
        row.namespace for row in rows
    }
    return Wish(
        tenancies=(*sorted(chosen), *([0] if unknown else [])),
        is_whole=not (clusters or namespaces),
        leaves_at=said.get("leaves_at") or timezone.now() - timedelta(seconds=1),
        hold=said.get("hold", False),
        retention_days=said.get("retention_days", settings.ENV.retention_days),
        reason=said["reason"],
    )


def etag_of(departure: Departure) -> str:
    """A strong ETag over a departure and all that goes with it."""
    return f'"{previews.seen(departure)}"'


def seen_content(request: Request) -> str:
    """What If-Match says was seen; raises VersionMissing without it and for `*`, which would agree to anything."""
    given = request.headers.get("If-Match", "").strip()
    if given in ("", "*"):
        raise VersionMissing
    return given.strip('"')
