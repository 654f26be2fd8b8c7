"""The API of cost centres."""

from collections.abc import Callable
from typing import Any

from django.db.models import Q, QuerySet
from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import people
from accounts.api import PersonSerializer
from accounts.cost_centres import actions
from accounts.cost_centres.models import CostCentre
from accounts.endpoints import Endpoint
from accounts.models import Team
from accounts.replay import Answer, answer_once
from accounts.roles import Permission
from web.refusals import BadInput
from web.strict import PageQuery, StrictSerializer, Text


class CostCentreSerializer(serializers.Serializer[CostCentre]):
    """A cost centre; until `confirmed_at` people decide what teams spend on it."""

    code = serializers.CharField()
    owner = PersonSerializer(allow_null=True)
    created_at = serializers.DateTimeField()
    confirmed_at = serializers.DateTimeField(allow_null=True)
    confirmed_by = PersonSerializer(allow_null=True)


class ConfirmCostCentreSerializer(StrictSerializer):
    """Which one, and who answers for it."""

    code = Text(max_length=20)
    owner = Text(
        required=False,
        max_length=36,
        help_text="The object id of somebody who has signed in.",
    )


class NoCostCentreFieldsSerializer(StrictSerializer):
    """Nothing has to be said."""


class CostCentreEndpoint(mixins.ListModelMixin, Endpoint):
    """Cost centres: all for who sees all teams, else those of one's teams and those one owns."""

    queryset = CostCentre.objects.none()
    serializer_class = CostCentreSerializer
    lookup_field = "code"
    lookup_value_converter = "slug"
    ordering = "code"
    asks = {"list": PageQuery}
    keyed = frozenset({"create", "confirm", "withdraw"})
    bodyless = frozenset({"confirm", "withdraw"})

    def get_queryset(self) -> QuerySet[CostCentre]:
        """Only those that concern the caller."""
        return visible_to(self.request.user)

    @extend_schema(
        request=ConfirmCostCentreSerializer,
        responses={201: CostCentreSerializer, 200: CostCentreSerializer},
    )
    def create(self, request: Request) -> Response:
        """Put one on the list, which platform leads may do before any team names it, or give one another owner."""
        said = self.body(ConfirmCostCentreSerializer)
        return answer_once(request, lambda: self._create(said))

    @extend_schema(request=NoCostCentreFieldsSerializer, responses=CostCentreSerializer)
    @action(detail=True, methods=["post"])
    def confirm(self, request: Request, code: str) -> Response:
        """Confirm one that a team has named."""
        self.body(NoCostCentreFieldsSerializer)
        return self._change(actions.confirm, self._seen(code))

    @extend_schema(request=NoCostCentreFieldsSerializer, responses=CostCentreSerializer)
    @action(detail=True, methods=["post"])
    def withdraw(self, request: Request, code: str) -> Response:
        """Take a confirmation back."""
        self.body(NoCostCentreFieldsSerializer)
        return self._change(actions.withdraw, self._seen(code))

    def _create(self, said: dict[str, Any]) -> Answer:
        found = people.of_oids([said["owner"]]) if "owner" in said else []
        if "owner" in said and not found:
            raise BadInput(
                "Nobody of this object id has signed in here.",
                code="no_such_person",
                field="owner",
            )
        was_confirmed = CostCentre.objects.confirmed().filter(
            code__iexact=said["code"].strip()
        )
        status = 200 if was_confirmed.exists() else 201
        made = actions.confirm(
            said["code"],
            by=self.caller,
            now=timezone.now(),
            owner=found[0] if found else None,
        )
        return Answer(self.shown(made, CostCentreSerializer), status)

    def _change(self, change: Callable[..., CostCentre], row: CostCentre) -> Response:
        def effect() -> Answer:
            changed = change(row.code, by=self.caller, now=timezone.now())
            return Answer(self.shown(changed, CostCentreSerializer))

        return answer_once(self.request, effect)

    def _seen(self, code: str) -> CostCentre:
        found = self.get_queryset().filter(code__iexact=code).first()
        if found is None:
            raise Http404
        return found


def visible_to(user: Any) -> QuerySet[CostCentre]:
    """Those that a person may see, with their people."""
    rows = CostCentre.objects.select_related("owner", "confirmed_by")
    if not user.is_authenticated:
        return rows.none()
    if user.may(Permission.SEE_ALL_TEAMS) or user.may(Permission.MANAGE_COST_CENTRES):
        return rows
    theirs = Team.objects.filter(pk__in=user.team_ids).order_by().values("cost_centre")
    return rows.filter(Q(owner=user) | Q(code__in=theirs))
