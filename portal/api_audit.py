"""What happened, over the API: composed here, because the audit package knows no people."""

from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.db.models import OuterRef, QuerySet, Subquery
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from accounts.models import Team
from accounts.roles import Permission
from audit.events import Kind
from audit.models import Event, RefusalCount, verify
from web.refusals import NoRight
from web.strict import (
    LARGEST_PAGE,
    USUAL_PAGE,
    Choice,
    Moment,
    QueryNumber,
    StrictSerializer,
    Text,
)


class EventSerializer(serializers.Serializer[Event]):
    """One thing that happened."""

    seq = serializers.IntegerField()
    at = serializers.DateTimeField()
    kind = serializers.ChoiceField(choices=Kind.choices)
    words = serializers.CharField()
    outcome = serializers.ChoiceField(choices=Event.Outcome.choices)
    actor_kind = serializers.CharField()
    actor_id = serializers.CharField()
    actor_name = serializers.CharField()
    team = serializers.CharField(
        allow_null=True, help_text="The slug of its team; null for what is of none."
    )
    subject_type = serializers.CharField()
    subject_id = serializers.CharField()
    details = serializers.DictField()
    request_id = serializers.CharField()
    previous = serializers.CharField(
        help_text="The hash of the event before; 64 zeros for the first."
    )
    hash = serializers.CharField()


class EventsSerializer(serializers.Serializer[Any]):
    """Events, oldest first; ask again with `after` to hear what is new."""

    next = serializers.URLField(
        allow_null=True, help_text="The following page; null at the newest event."
    )
    after = serializers.IntegerField(help_text="The newest number in this answer.")
    results = EventSerializer(many=True)


class VerdictSerializer(serializers.Serializer[Any]):
    """Whether the chain of events holds."""

    checked = serializers.IntegerField()
    broken_at = serializers.IntegerField(allow_null=True)
    reason = serializers.CharField()


class RefusalCountSerializer(serializers.Serializer[RefusalCount]):
    """Refused calls of one person in a day that are no events."""

    day = serializers.DateField()
    actor_id = serializers.CharField()
    actor_name = serializers.CharField()
    status = serializers.IntegerField()
    count = serializers.IntegerField()


class RefusalCountsSerializer(serializers.Serializer[Any]):
    """The newest days first, and in each who was refused most often."""

    results = RefusalCountSerializer(many=True)


class EventQuery(StrictSerializer):
    """Which events."""

    after = QueryNumber(required=False, help_text="Only events with a higher number.")
    limit = QueryNumber(required=False, min_value=1, max_value=LARGEST_PAGE)
    kind = Choice(choices=Kind.choices, required=False)
    subject_type = Text(required=False, max_length=30)
    subject_id = Text(required=False, max_length=64)
    outcome = Choice(choices=Event.Outcome.choices, required=False)
    actor_id = Text(
        required=False,
        max_length=64,
        help_text="Who did it: of a person the object id in Entra ID.",
    )
    team = Text(
        required=False, max_length=63, help_text="Only of this team, by its slug."
    )
    since = Moment(required=False, help_text="Only what happened then or later.")
    until = Moment(required=False, help_text="Only what happened before.")


class EventEndpoint(Endpoint):
    """The audit log."""

    queryset = Event.objects.none()
    serializer_class = EventSerializer
    asks = {"list": EventQuery}
    lookup_value_converter = "int"

    def get_queryset(self) -> QuerySet[Event]:
        """Events of one's own teams; all of them for leads and auditors."""
        everything = self.caller.may(Permission.SEE_AUDIT)
        seen = Event.objects.visible_to_teams(
            None if everything else self.caller.team_ids
        )
        slug = Team.objects.filter(pk=OuterRef("team_id")).values("slug")
        return seen.annotate(team=Subquery(slug))

    @extend_schema(operation_id="events_list", responses=EventsSerializer)
    def list(self, request: Request) -> Response:
        """What happened after a number, oldest first."""
        exact = {
            key: self.asked[key]
            for key in ("kind", "subject_type", "subject_id", "outcome", "actor_id")
            if key in self.asked
        }
        if "team" in self.asked:
            seen = Team.objects.visible_to(self.caller)
            exact["team_id__in"] = seen.filter(slug=self.asked["team"]).values("pk")
        if "since" in self.asked:
            exact["at__gte"] = self.asked["since"]
        if "until" in self.asked:
            exact["at__lt"] = self.asked["until"]
        after, limit = self.asked.get("after", 0), self.asked.get("limit", USUAL_PAGE)
        rows = list(
            self.get_queryset()
            .filter(seq__gt=after, **exact)
            .order_by("seq")[: limit + 1]
        )
        more, rows = len(rows) > limit, rows[:limit]
        newest = rows[-1].seq if rows else after
        query = urlencode({**request.query_params.dict(), "after": newest})
        following = f"{settings.PUBLIC_URL}{request.path}?{query}" if more else None
        return Response(
            EventsSerializer({"next": following, "after": newest, "results": rows}).data
        )

    @extend_schema(operation_id="events_retrieve", responses=EventSerializer)
    def retrieve(self, request: Request, pk: int) -> Response:
        """One event by its number, with everything that is kept of it."""
        return Response(self.shown(self.get_object(), EventSerializer))

    @extend_schema(operation_id="events_refusals", responses=RefusalCountsSerializer)
    @action(detail=False)
    def refusals(self, request: Request) -> Response:
        """How many calls were refused by day that are no events: typing errors, rates (leads and auditors)."""
        if not self.caller.may(Permission.SEE_AUDIT):
            raise NoRight(
                "Leads and auditors see what was refused.", code="not_an_auditor"
            )
        rows = RefusalCount.objects.all()[:LARGEST_PAGE]
        return Response(RefusalCountsSerializer({"results": rows}).data)

    @extend_schema(operation_id="events_verify", responses=VerdictSerializer)
    @action(detail=False)
    def verify(self, request: Request) -> Response:
        """Walk the whole chain and name the first event that does not fit (leads and auditors)."""
        if not self.caller.may(Permission.SEE_AUDIT):
            raise NoRight(
                "Leads and auditors verify the audit log.", code="not_an_auditor"
            )
        return Response(VerdictSerializer(verify()).data)
