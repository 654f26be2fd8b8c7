"""Every verdict in a list, deciding several requests in one call, what they add up to, and how deciding goes."""

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.request import Request as Call
from rest_framework.response import Response

from accounts.api import TeamNameSerializer
from accounts.directory import freshness
from accounts.endpoints import Endpoint
from accounts.roles import Permission
from approvals.decisions import bulk
from approvals.decisions.bulk import Chosen
from approvals.decisions.decided import NARROWED_BY, DecidedSerializer, DecisionQuery
from approvals.decisions.statistics import statistics
from approvals.models import Decision, Request
from approvals.requests.listing import with_all
from web.output import Month
from web.refusals import NoRight
from web.strict import Choice, Integer, QueryNumber, StrictSerializer, Text

LARGEST_KEY = 2_000_000_000


class ChosenSerializer(StrictSerializer):
    """A verdict on one request in the version that was seen."""

    request = Integer(min_value=1, max_value=LARGEST_KEY)
    version = Integer(
        min_value=1,
        max_value=LARGEST_KEY,
        help_text="`version` of the request as you saw it.",
    )
    verdict = Choice(choices=bulk.VERDICTS)
    count = Integer(min_value=1, max_value=LARGEST_KEY, required=False)
    reason = Text(required=False, allow_blank=True)
    reason_code = Choice(
        choices=Decision.Because.choices, required=False, source="because"
    )


class ManySerializer(StrictSerializer):
    """Up to fifty verdicts; each is carried out by itself."""

    decisions = serializers.ListField(
        child=ChosenSerializer(), min_length=1, max_length=bulk.MOST
    )


class NumbersSerializer(StrictSerializer):
    """Up to fifty requests."""

    requests = serializers.ListField(
        child=Integer(min_value=1, max_value=LARGEST_KEY),
        min_length=1,
        max_length=bulk.MOST,
    )


class ResultSerializer(serializers.Serializer[Any]):
    """What became of one; `code` says why it was not decided."""

    request = serializers.IntegerField()
    decided = serializers.BooleanField()
    code = serializers.CharField()
    message = serializers.CharField()
    waits_for = serializers.CharField(
        help_text="Who decides next, in words, where the vote was not the last one; else empty."
    )


class ResultsSerializer(serializers.Serializer[Any]):
    """What became of each, in the order in which they were sent."""

    results = ResultSerializer(many=True)


class PoolSerializer(serializers.Serializer[Any]):
    """One kind of GPU: free now, and when all are approved; negative when too few are."""

    cluster = serializers.CharField(source="flavor.cluster.name")
    flavor = serializers.CharField(source="flavor.name")
    free = serializers.IntegerField(source="flavor.free")
    free_after = serializers.IntegerField(source="after")


class Hours(serializers.DecimalField):
    """GPU-hours; null where they have no limit."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_digits=14, decimal_places=2, allow_null=True, **options)


class PurseSerializer(serializers.Serializer[Any]):
    """One month of a team: left now, and when all are approved; GPU-hours are null where they have no limit."""

    team = TeamNameSerializer()
    month = Month()
    limit_usd = serializers.DecimalField(
        source="limit", max_digits=14, decimal_places=2
    )
    left_before = serializers.DecimalField(
        source="before", max_digits=14, decimal_places=2
    )
    left_after = serializers.DecimalField(
        source="after", max_digits=14, decimal_places=2
    )
    gpu_hours_limit = Hours(source="hours_limit")
    gpu_hours_left_before = Hours(source="hours_before")
    gpu_hours_left_after = Hours(source="hours_after")


class EffectSerializer(serializers.Serializer[Any]):
    """All of them approved at once; nothing was stored. `left_out` are those that are not the caller's to decide."""

    gpus = serializers.IntegerField(help_text="New ones.")
    kept = serializers.IntegerField(
        help_text="GPUs that are held already and go on under a renewal."
    )
    usd = serializers.DecimalField(max_digits=14, decimal_places=2)
    pools = PoolSerializer(many=True)
    budgets = PurseSerializer(source="purses", many=True)
    too_much = serializers.ListField(child=serializers.CharField())
    left_out = serializers.ListField(child=serializers.IntegerField())


class WeekSerializer(serializers.Serializer[Any]):
    """One week of asks."""

    start = serializers.DateTimeField()
    asked = serializers.IntegerField()
    automatic = serializers.IntegerField()
    percent = serializers.IntegerField()


class SeatPaceSerializer(serializers.Serializer[Any]):
    """One seat; spans in seconds, null below five decisions."""

    seat = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    done = serializers.IntegerField()
    waiting = serializers.IntegerField()
    late = serializers.IntegerField()
    median_seconds = serializers.SerializerMethodField()
    nine_of_ten_seconds = serializers.SerializerMethodField()

    def get_median_seconds(self, pace: Any) -> int | None:
        """Half of the steps were decided within this time."""
        return None if pace.median is None else int(pace.median.total_seconds())

    def get_nine_of_ten_seconds(self, pace: Any) -> int | None:
        """Nine of ten were."""
        return (
            None if pace.nine_of_ten is None else int(pace.nine_of_ten.total_seconds())
        )


class RejectionsSerializer(serializers.Serializer[Any]):
    """One sort of reason for which requests were rejected, and how many were."""

    reason = serializers.CharField(
        source="words", help_text="In words, as its page says it."
    )
    requests = serializers.IntegerField()


class StatisticsSerializer(serializers.Serializer[Any]):
    """How the requests of these days were decided."""

    days = serializers.IntegerField()
    asked = serializers.IntegerField()
    automatic = serializers.IntegerField()
    percent_automatic = serializers.IntegerField()
    approved = serializers.IntegerField()
    approved_less = serializers.IntegerField()
    rejected = serializers.IntegerField()
    withdrawn = serializers.IntegerField()
    lapsed = serializers.IntegerField()
    edited = serializers.IntegerField()
    asked_back = serializers.IntegerField()
    given_back_early = serializers.IntegerField()
    rejections = RejectionsSerializer(
        many=True,
        source="because",
        help_text="Why requests were rejected, most frequent first.",
    )
    weeks = WeekSerializer(many=True)
    paces = SeatPaceSerializer(many=True)


class StatisticsQuery(StrictSerializer):
    """Of how many days."""

    days = QueryNumber(required=False, min_value=1, max_value=365)


class DecisionEndpoint(mixins.ListModelMixin, Endpoint):
    """Who was given what, by whom and why; and several verdicts in one call."""

    queryset = Decision.objects.none()
    serializer_class = DecidedSerializer
    # Newest first, by an index that is there.
    ordering = "-id"
    asks = {"list": DecisionQuery}

    def get_queryset(self) -> QuerySet[Decision]:
        """Those on requests of one's own teams, void ones too; all of them for leads and auditors."""
        return Decision.objects.visible_to(self.request.user).with_request()

    def filter_queryset(self, queryset: Any) -> Any:
        """What was asked for in the address."""
        asked = getattr(self, "asked", {})
        narrowed = {NARROWED_BY[key]: asked[key] for key in NARROWED_BY if key in asked}
        if "automatic" in asked:
            narrowed["by__isnull"] = asked["automatic"] == "true"
        return queryset.filter(**narrowed)

    @extend_schema(
        operation_id="decisions_create",
        request=ManySerializer,
        responses={200: ResultsSerializer},
    )
    def create(self, call: Call) -> Response:
        """Decide each by itself; 200 with what became of each. A repetition decides nothing twice."""
        rows = self.body(ManySerializer)["decisions"]
        freshness.renew(self.caller, now=timezone.now())
        results = bulk.decide_many(
            [Chosen(**row) for row in rows], by=self.caller, now=timezone.now()
        )
        return Response({"results": ResultSerializer(results, many=True).data})


class EffectEndpoint(Endpoint):
    """What approving several requests would do."""

    serializer_class = EffectSerializer
    previews = frozenset({"create"})

    @extend_schema(
        operation_id="decisions_effect",
        request=NumbersSerializer,
        responses={200: EffectSerializer},
    )
    def create(self, call: Call) -> Response:
        """Add up those of the named requests that the caller may decide; nothing is stored."""
        numbers = set(self.body(NumbersSerializer)["requests"])
        now = timezone.now()
        rows: QuerySet[Request] = with_all(
            Request.objects.awaiting(self.caller, now).filter(pk__in=numbers)
        )
        chosen = list(rows.order_by("created_at", "id"))
        effect = bulk.effect_of(chosen, now=now)
        effect.left_out = sorted(numbers - {each.pk for each in chosen})
        return Response(EffectSerializer(effect).data)


class StatisticsEndpoint(Endpoint):
    """How deciding goes."""

    serializer_class = StatisticsSerializer
    asks = {"list": StatisticsQuery}

    @extend_schema(operation_id="decisions_statistics", responses=StatisticsSerializer)
    def list(self, call: Call) -> Response:
        """Of the last `days`, 30 unless told otherwise; for those who see every team."""
        if not self.caller.may(Permission.SEE_ALL_TEAMS):
            raise NoRight(
                "Those who see every team see how deciding goes.", code="not_for_you"
            )
        found = statistics(days=self.asked.get("days", 30), now=timezone.now())
        return Response(StatisticsSerializer(found).data)
