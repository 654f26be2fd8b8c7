"""The API of stand-ins."""

from collections.abc import Callable
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import people, replay
from accounts.api import PersonSerializer
from accounts.endpoints import Endpoint
from accounts.models import Delegation
from accounts.stand_ins import actions as delegation
from approvals.stand_ins import actions as lending
from web.refusals import BadInput
from web.strict import Moment, PageQuery, StrictSerializer, Text


class DelegationSerializer(serializers.Serializer[Delegation]):
    """A seat lent from one moment until another, which counts once accepted; `ended_at` when it was ended before."""

    id = serializers.IntegerField()
    giver = PersonSerializer()
    to = PersonSerializer()
    starts_at = serializers.DateTimeField()
    until = serializers.DateTimeField()
    reason = serializers.CharField(source="why")
    created_at = serializers.DateTimeField()
    state = serializers.ChoiceField(choices=Delegation.State.choices)
    accepted_at = serializers.DateTimeField(allow_null=True)
    declined_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class NewDelegationSerializer(StrictSerializer):
    """Whom to lend the seat to, and for how long."""

    to = Text(max_length=36, help_text="The object id of somebody who has signed in.")
    starts_at = Moment(required=False, help_text="Now unless told otherwise.")
    until = Moment(help_text="At most 90 days after the start.")
    reason = Text(
        required=False,
        allow_blank=True,
        max_length=delegation.LONGEST_WHY,
        source="why",
    )


class DelegationEndpoint(mixins.ListModelMixin, Endpoint):
    """Stand-ins that the caller named, and those in whose seats the caller sits."""

    queryset = Delegation.objects.none()
    serializer_class = DelegationSerializer
    lookup_value_converter = "int"
    ordering = "-starts_at"
    asks = {"list": PageQuery}
    keyed = frozenset({"create"})
    bodyless = frozenset({"accept", "decline", "destroy"})

    def get_queryset(self) -> QuerySet[Delegation]:
        """Only those that concern the caller."""
        mine = Q(giver=self.request.user.pk or 0) | Q(to=self.request.user.pk or 0)
        return Delegation.objects.filter(mine).select_related("giver", "to")

    @extend_schema(
        request=NewDelegationSerializer, responses={201: DelegationSerializer}
    )
    def create(self, request: Request) -> Response:
        """Ask somebody to stand in for a time, which counts once they accept; a token that only asks may not."""
        wanted = self.body(NewDelegationSerializer)
        return replay.answer_once(request, lambda: self._make(wanted))

    @extend_schema(request=None, responses=DelegationSerializer)
    @action(detail=True, methods=["post"])
    def accept(self, call: Request, pk: int) -> Response:
        """Accept to stand in; who was asked may, and doing so again changes nothing."""
        return self._answer(lending.accept)

    @extend_schema(request=None, responses=DelegationSerializer)
    @action(detail=True, methods=["post"])
    def decline(self, call: Request, pk: int) -> Response:
        """Decline to stand in, which ends it; who was asked may, and doing so again changes nothing."""
        return self._answer(lending.decline)

    def _answer(self, answer: Callable[..., None]) -> Response:
        found = self.get_object()
        answer(found, by=self.caller, now=timezone.now())
        return Response(
            self.shown(self.get_queryset().get(pk=found.pk), DelegationSerializer)
        )

    @extend_schema(
        request=None, responses={204: OpenApiResponse(description="It has ended.")}
    )
    def destroy(self, request: Request, pk: int) -> Response:
        """End it now; either of the two may, and doing so again changes nothing."""
        lending.end(self.get_object(), by=self.caller, now=timezone.now())
        return Response(status=204)

    def _make(self, wanted: dict[str, Any]) -> replay.Answer:
        now, found = timezone.now(), people.of_oids([wanted["to"]])
        if not found:
            raise BadInput(
                "Nobody of this object id has signed in here.",
                code="no_such_person",
                field="to",
            )
        made = lending.lend(
            giver=self.caller,
            to=found[0],
            starts_at=wanted.get("starts_at", now),
            until=wanted["until"],
            why=wanted.get("why", ""),
            now=now,
        )
        return replay.Answer(self.shown(made, DelegationSerializer), 201)
