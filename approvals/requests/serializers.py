"""How the API shows requests, and what it takes for one."""

from datetime import datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from accounts.api import PersonSerializer, TeamNameSerializer
from accounts.models import User
from allocations.api import AllocationSerializer, StillRunningSerializer
from allocations.models import Allocation
from allocations.use.words import still_running
from approvals.conversation import page as talk
from approvals.decisions.actions import may_decide
from approvals.fulfilment.serializers import TaskSerializer
from approvals.models import Decision, Evaluation, Request, Rerouting, Step
from approvals.notices import rerouting_words
from approvals.requests.actions import MOST_UNITS
from approvals.requests.presenting import over_budget_now, state_of
from approvals.requests.prices import usd_of
from approvals.requests.timeline import coming
from approvals.states import STORED, State
from approvals.webhooks import ApprovedSerializer
from catalogue.offerings import CHOICES
from manual.models import Task
from policy.evaluation import Outcome
from policy.models import PolicyVersion
from policy.serializers import PolicyWholeSerializer
from provisioning.api import TenancyShortSerializer
from web.output import OutputSerializer
from web.strict import Choice, Gpus, Integer, Moment, StrictSerializer, Text

OVER_BUDGET = "That nobody can approve all of it before the team's budget is raised, and what to do; else empty."
STATES = [(state.value, state.words) for state in STORED]


class RuleSerializer(OutputSerializer[Any]):
    """One rule: a number and what it was held against."""

    code = serializers.CharField()
    holds = serializers.BooleanField()
    within = serializers.BooleanField(
        required=False,
        help_text="False where it holds only because the policy allows what is over its number or not measured yet.",
    )
    text = serializers.CharField()
    limit = serializers.CharField()
    blocks = serializers.BooleanField()


class PlannedStepSerializer(OutputSerializer[Any]):
    """Somebody who would decide; times in hours."""

    seat = serializers.CharField()
    words = serializers.CharField()
    quorum = serializers.IntegerField()
    target_hours = serializers.IntegerField()


class RouteSizeSerializer(OutputSerializer[Any]):
    """What the route was chosen by: the ask, or the sum with what was granted or asked for lately."""

    gpus = serializers.IntegerField()
    usd = serializers.CharField()
    words = serializers.CharField(
        help_text="Why it is more than the single ask; empty when it is not."
    )


class AnswerSerializer(OutputSerializer[Any]):
    """The policy's answer, as it is stored; money is USD."""

    outcome = serializers.ChoiceField(choices=[outcome.value for outcome in Outcome])
    sentence = serializers.CharField()
    route = serializers.ListField(child=serializers.CharField())
    route_size = RouteSizeSerializer(
        allow_null=True, required=False, help_text="Null where nobody has to decide."
    )
    steps = PlannedStepSerializer(many=True)
    rules = RuleSerializer(many=True)
    usd = serializers.CharField()
    usd_per_day = serializers.CharField()
    gpu_hours = serializers.CharField()


class RemedySerializer(OutputSerializer[Any]):
    """One way to an automatic answer."""

    code = serializers.CharField(
        help_text="ask_less, wait, or the rule that stands in the way of an ask of any size."
    )
    sentence = serializers.CharField()
    at = serializers.DateTimeField(
        allow_null=True, help_text="From when on, where that is known."
    )
    count = serializers.IntegerField(
        allow_null=True,
        help_text="How many units to ask for, or how many GPUs to give back.",
    )


class EvaluationSerializer(OutputSerializer[Evaluation]):
    """An answer with the policy that gave it and a hash of everything it looked at."""

    policy = serializers.IntegerField(source="policy.number")
    content_version = serializers.IntegerField(
        help_text="Which version of the request it judged."
    )
    at = serializers.DateTimeField()
    answer = AnswerSerializer()
    remedies = RemedySerializer(
        many=True,
        allow_null=True,
        help_text="Empty when it is automatic; null before this was kept.",
    )
    input_hash = serializers.CharField()


class VersionSerializer(OutputSerializer[Any]):
    """What one version of a request asked for, and what it changed."""

    content_version = serializers.IntegerField()
    at = serializers.DateTimeField()
    by = PersonSerializer()
    name = serializers.CharField(help_text="What was asked for, in a few words.")
    changed = serializers.ListField(
        child=serializers.CharField(),
        help_text="What differs from the version before, such as GPUs: 8 → 4; empty of the first.",
    )


class StepSerializer(OutputSerializer[Step]):
    """One seat that decides, of the version of the request with this number."""

    version = serializers.IntegerField()
    position = serializers.IntegerField()
    seat = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    quorum = serializers.IntegerField()
    opened_at = serializers.DateTimeField(allow_null=True)
    done_at = serializers.DateTimeField(allow_null=True)
    dropped_at = serializers.DateTimeField(
        allow_null=True,
        help_text="No longer needed since then: a policy that came into force does not have it.",
    )
    paused_at = serializers.DateTimeField(allow_null=True)
    remind_at = serializers.DateTimeField(allow_null=True)
    due_at = serializers.DateTimeField(allow_null=True)
    escalate_at = serializers.DateTimeField(allow_null=True)
    reminded_at = serializers.DateTimeField(allow_null=True)
    escalated_at = serializers.DateTimeField(allow_null=True)
    escalate_to = serializers.CharField()
    stand_in = PersonSerializer(allow_null=True)


class ReroutingSerializer(OutputSerializer[Rerouting]):
    """What a policy that came into force changed about who decides."""

    policy = serializers.IntegerField(source="policy.number")
    content_version = serializers.IntegerField()
    at = serializers.DateTimeField()
    words = serializers.SerializerMethodField()
    now_decide = serializers.ListField(child=serializers.CharField())
    no_longer_needed = serializers.ListField(
        child=serializers.CharField(), source="dropped"
    )
    refused = serializers.CharField(
        help_text="The rule by which nobody may approve it as it stands; empty where others decide."
    )

    def get_words(self, changed: Rerouting) -> str:
        """The same in sentences, as the timeline says it."""
        return rerouting_words(changed)


class DecisionSerializer(OutputSerializer[Decision]):
    """One verdict; `by` is null for the policy."""

    by = PersonSerializer(allow_null=True)
    content_version = serializers.IntegerField(
        help_text="Of which version; a vote on an earlier one is void."
    )
    seat = serializers.SerializerMethodField()
    verdict = serializers.ChoiceField(choices=Decision.Verdict.choices)
    count = serializers.IntegerField(allow_null=True)
    until = serializers.DateTimeField(
        allow_null=True,
        help_text="Of an approval: until when; else null.",
    )
    reason_code = serializers.CharField(
        source="because", help_text="Of a rejection; else empty."
    )
    stands_in_for = serializers.SerializerMethodField()
    usd = serializers.DecimalField(max_digits=12, decimal_places=2)
    reason = serializers.CharField()
    at = serializers.DateTimeField()

    def get_stands_in_for(self, decision: Decision) -> str:
        """Whose seat it was, when it was not the person's own; else empty."""
        other = (
            decision.seat_of_id is not None and decision.seat_of_id != decision.by_id
        )
        return decision.seat_of.name if other and decision.seat_of else ""

    def get_seat(self, decision: Decision) -> str | None:
        """The seat it was made in; null for the policy and for an answer."""
        return decision.step.seat if decision.step else None


class NextSerializer(OutputSerializer[Any]):
    """Something that is or comes; `at` is null for what is now, and for what has no date yet."""

    what = serializers.CharField()
    why = serializers.CharField()
    at = serializers.DateTimeField(allow_null=True)


class CommentSerializer(OutputSerializer[Any]):
    """Something said about a request."""

    by = PersonSerializer()
    text = serializers.CharField()
    at = serializers.DateTimeField()


class CommentsSerializer(OutputSerializer[Any]):
    """The last comments on a request, oldest first."""

    results = CommentSerializer(many=True)


class EndedSerializer(OutputSerializer[Allocation]):
    """What was held under a request, or a part of it, and how it ended; money is USD."""

    allocation = serializers.IntegerField(source="pk")
    what = serializers.CharField()
    begun_at = serializers.DateTimeField(allow_null=True)
    charged_from = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField()
    end_reason = serializers.ChoiceField(choices=Allocation.End.choices)
    ended_by = serializers.CharField(help_text="Who ended it; empty for its date.")
    taken_back_because = serializers.CharField(
        help_text="Why it was taken back from its team; empty for any other end."
    )
    usd_in_all = serializers.DecimalField(
        max_digits=14, decimal_places=2, help_text="What it has cost."
    )


class RequestShortSerializer(OutputSerializer[Request]):
    """A request. `state` is what was decided, `stage` what has become of it; `version` counts its changes."""

    id = serializers.IntegerField()
    team = TeamNameSerializer()
    requester = PersonSerializer()
    offering = serializers.ChoiceField(choices=CHOICES)
    spec = serializers.DictField()
    name = serializers.CharField(
        source="whole_name", help_text="What is asked for, in a few words."
    )
    place = serializers.CharField(
        help_text="The cluster or region; empty where it has none."
    )
    count = serializers.IntegerField(help_text="How many units of the offering.")
    count_now = serializers.IntegerField(
        help_text="How many of them were approved, else what the votes so far leave while it waits."
    )
    approved_count = serializers.IntegerField(allow_null=True)
    cluster = serializers.CharField(
        source="flavor.cluster.name", default=None, allow_null=True
    )
    flavor = serializers.CharField(source="flavor.name", default=None, allow_null=True)
    gpus = serializers.IntegerField(help_text="GPUs in all; 0 for what has none.")
    starts_at = serializers.DateTimeField(
        allow_null=True, help_text="From when on, where it was asked to begin later."
    )
    until = serializers.DateTimeField(help_text="Until when it was asked for.")
    until_now = serializers.DateTimeField(
        help_text="Until when it was approved, else what the votes so far leave while it waits."
    )
    approved_until = serializers.DateTimeField(
        allow_null=True, help_text="Until when it was granted, which may be earlier."
    )
    purpose = serializers.ChoiceField(choices=Request.Purpose.choices)
    reason = serializers.CharField()
    state = serializers.ChoiceField(choices=STATES)
    stage = serializers.SerializerMethodField()
    turn = serializers.ChoiceField(choices=Request.Turn.choices)
    usd = serializers.DecimalField(
        max_digits=12, decimal_places=2, help_text="In all, as asked."
    )
    formula = serializers.CharField(
        help_text="How that came about: at which price of which day."
    )
    usd_now = serializers.SerializerMethodField()
    content_version = serializers.IntegerField(
        help_text="Counts the changes of what is asked."
    )
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    decided_at = serializers.DateTimeField(allow_null=True)
    lapses_at = serializers.DateTimeField(
        source="lapses",
        help_text="Undecided, or unanswered while its requester has the turn.",
    )

    @extend_schema_field(
        serializers.DecimalField(
            max_digits=12,
            decimal_places=2,
            help_text="In all, of `count_now` until `until_now`, as it was voted for.",
        )
    )
    def get_usd_now(self, request: Request) -> str:
        """As asked, where that is all of it."""
        return f"{usd_of(request):.2f}"

    def get_stage(self, request: Request) -> State:
        """The state that people see."""
        return state_of(request, now=timezone.now())


class RequestSerializer(ApprovedSerializer, RequestShortSerializer):
    """A request with its evaluations, steps, decisions, place and what is held under it."""

    tenancy = TenancyShortSerializer(allow_null=True)
    versions = serializers.SerializerMethodField()
    evaluations = EvaluationSerializer(many=True)
    steps = StepSerializer(many=True)
    decisions = DecisionSerializer(many=True)
    reroutings = ReroutingSerializer(
        many=True,
        help_text="What policies that came into force while it waited changed.",
    )
    tasks = serializers.SerializerMethodField()
    renews = serializers.IntegerField(
        source="renews_id",
        allow_null=True,
        help_text="The request whose GPUs go on under this one.",
    )
    allocation = serializers.SerializerMethodField()
    ended = serializers.SerializerMethodField()
    still_running = serializers.SerializerMethodField()
    next = serializers.SerializerMethodField()
    offered_again_at = serializers.DateTimeField(allow_null=True)
    withdrawn_because = serializers.CharField(
        help_text="Why it was withdrawn other than by who asked; else empty."
    )
    why_not_granted = serializers.SerializerMethodField(
        help_text="Why the portal could not grant what the policy or people approve, while that is so; else empty."
    )
    why_not_decide = serializers.SerializerMethodField()
    over_budget = serializers.SerializerMethodField(help_text=OVER_BUDGET)
    why_closed = serializers.SerializerMethodField(
        help_text="That its cluster, kind of GPU or offering is not offered now, so nobody can approve it; else empty."
    )

    @extend_schema_field(VersionSerializer(many=True))
    def get_versions(self, request: Request) -> Any:
        """What was asked for in each version, oldest first; empty while it is as it was sent."""
        return VersionSerializer(talk.versions(request), many=True).data

    def get_why_not_granted(self, request: Request) -> str:
        """In words for its requester."""
        return request.why_not_granted(timezone.now())

    def get_over_budget(self, request: Request) -> str:
        """Empty, too, once it is decided."""
        if request.state != State.WAITING:
            return ""
        return over_budget_now(
            request,
            _answered(request).answer,
            viewer=self.context["request"].user,
            now=timezone.now(),
        )

    def get_why_closed(self, request: Request) -> str:
        """Empty, too, once it is decided."""
        closed = request.why_closed if request.state == State.WAITING else ""
        return closed and f"{closed}."

    @extend_schema_field(AllocationSerializer(allow_null=True))
    def get_allocation(self, request: Request) -> Any:
        """What is held now."""
        held = request.allocation
        if held is None or held.ended_at is not None:
            return None
        # All of it is at hand with the request.
        held.team, held.flavor, held.tenancy, held.hold = (
            request.team,
            request.flavor,
            request.tenancy,
            request.hold,
        )
        return AllocationSerializer(held).data

    @extend_schema_field(EndedSerializer(many=True))
    def get_ended(self, request: Request) -> Any:
        """What was held under it and is no longer, or a part of it, in the order of its end."""
        return EndedSerializer(self._ended(request), many=True).data

    @extend_schema_field(TaskSerializer(many=True))
    def get_tasks(self, request: Request) -> Any:
        """What people carry out for it."""
        return TaskSerializer(self._tasks(request), many=True).data

    @extend_schema_field(StillRunningSerializer(many=True))
    def get_still_running(self, request: Request) -> Any:
        """Work that runs on GPUs that were held under it and are no longer."""
        # Work is left over only of what has ended.
        running = still_running(request.hold_id) if self._ended(request) else []
        return StillRunningSerializer(running, many=True).data

    @extend_schema_field(NextSerializer(many=True))
    def get_next(self, request: Request) -> Any:
        """What it is doing and what happens next, as its page says."""
        now = timezone.now()
        state = state_of(request, now=now)
        held = request.allocation
        ends = (
            held.next_steps(now)
            if held is not None and held.kept_until > now and not held.ended_at
            else None
        )
        parts = coming(
            request, state, request.current_steps, ends, self._tasks(request)
        )
        dated = [
            (part, part["at"] if isinstance(part["at"], datetime) else None)
            for part in parts
        ]
        rows = [
            {"what": part["title"], "why": part.get("why", ""), "at": at}
            for part, at in dated
        ]
        return NextSerializer(rows, many=True).data

    def _ended(self, request: Request) -> Any:
        """Read once for an answer."""
        known: Any = getattr(request, "found_ended", None)
        if known is None:
            rows = Allocation.objects.filter(hold=request.hold_id)
            rows = rows.exclude(ended_at=None).select_related("flavor")
            is_granted = request.state == State.APPROVED
            known = list(rows.order_by("ended_at", "pk")) if is_granted else []
            request.found_ended = known  # type: ignore[attr-defined]
        return known

    def _tasks(self, request: Request) -> Any:
        """Read once for an answer; the allocation knows the last of them, so none is read where it knows none."""
        known: Any = getattr(request, "found_tasks", None)
        if known is None:
            any_of_them = (
                request.allocation is not None
                and request.allocation.task_id is not None
            )
            known = (
                list(Task.objects.of_request(request.pk).described())
                if any_of_them
                else []
            )
            request.found_tasks = known  # type: ignore[attr-defined]
        return known

    def get_why_not_decide(self, request: Request) -> str:
        """Why the caller may not decide it now; empty when they may."""
        user: User = self.context["request"].user
        return may_decide(request, user, now=timezone.now())


def _answered(request: Request) -> Evaluation:
    """The answer that its page goes by: the first to what is asked now, or that of the policy that routed it last."""
    answers = {one.pk: one for one in request.evaluations.all()}
    numbers = [
        each.evaluation_id
        for each in request.reroutings.all()
        if each.content_version == request.content_version
    ]
    if numbers:
        return answers[numbers[-1]]
    return next(
        one
        for one in answers.values()
        if one.content_version == request.content_version
    )


SHORT_FORM = ("flavor", "gpus", "purpose")
NEEDED = ErrorDetail("This is needed.", "required")


class SpecSerializer(StrictSerializer):
    """What is asked for: the spec of the offering, or in short GPUs with `flavor`, `gpus` and `purpose`."""

    spec = serializers.DictField(
        required=False, help_text="The fields of the offering; see /api/v1/offerings/."
    )
    flavor = Text(
        max_length=81,
        required=False,
        help_text="Cluster and flavor, such as training-eastus/a100.",
    )
    gpus = Gpus(required=False)
    purpose = Choice(choices=Request.Purpose.choices, required=False)

    def validate_flavor(self, value: str) -> str:
        """A cluster and a name."""
        cluster, slash, name = value.partition("/")
        if not (cluster and slash and name):
            raise serializers.ValidationError(
                "Write it as cluster/flavor.", code="bad_flavor"
            )
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Either the short form or a spec, which then has what was said in short."""
        short = [name for name in SHORT_FORM if name in attrs]
        if "spec" in attrs and short:
            raise serializers.ValidationError(
                {short[0]: "Say it inside spec, or leave spec out."}
            )
        if short:
            attrs["spec"] = {name: attrs.pop(name) for name in short}
        return attrs


class AskSerializer(SpecSerializer):
    """What is asked for: an offering with its spec, or in short GPUs with `flavor`, `gpus` and `purpose`."""

    team = Text(max_length=40)
    offering = Choice(choices=CHOICES, required=False, help_text="gpus when left out.")
    namespace = Text(
        max_length=63,
        required=False,
        help_text="The team's namespace that it is for; needed where the team has several on the cluster.",
    )
    until = Moment()
    starts_at = Moment(
        required=False,
        allow_null=True,
        help_text="Later than now: it is booked, and begins by itself. Null or left out: at once.",
    )
    reason = Text(
        required=False, allow_blank=True, help_text="Needed when people decide."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """With the spec of an offering, or with the kind and the number of GPUs."""
        is_short = "spec" not in attrs
        attrs = super().validate(attrs)
        spec = attrs.get("spec", {})
        if is_short:
            if attrs.get("offering", "gpus") != "gpus" and not spec:
                raise serializers.ValidationError({"spec": NEEDED})
            missing = [name for name in ("flavor", "gpus") if name not in spec]
            if missing:
                raise serializers.ValidationError(dict.fromkeys(missing, NEEDED))
        return attrs


class EditSerializer(SpecSerializer):
    """What is asked for instead, with those fields of its spec that change; what is left out stays as it is."""

    namespace = Text(
        max_length=63,
        required=False,
        help_text="Needed for another cluster on which the team has several namespaces.",
    )
    until = Moment(required=False)
    starts_at = Moment(required=False, allow_null=True, help_text="Null: at once.")
    reason = Text(required=False, allow_blank=True)


class ApproveSerializer(StrictSerializer):
    """A vote for it."""

    count = Integer(
        required=False,
        min_value=1,
        max_value=MOST_UNITS,
        help_text="Fewer units than were asked for.",
    )
    until = Moment(
        required=False,
        help_text="An earlier end than was asked for, a day after it begins at the earliest.",
    )
    reason = Text(required=False, allow_blank=True)


class RejectSerializer(StrictSerializer):
    """A vote against it."""

    reason = Text()
    reason_code = Choice(
        choices=Decision.Because.choices,
        required=False,
        source="because",
        help_text="Of which sort the reason is; `other` when left out.",
    )


class TextSerializer(StrictSerializer):
    """What is written to the other side: a question, an answer, a comment."""

    text = Text()


class RenewSerializer(StrictSerializer):
    """Until when to keep what is held."""

    until = Moment(
        required=False, help_text="Seven days after the present end when left out."
    )
    reason = Text(
        required=False, allow_blank=True, help_text="Needed when people decide."
    )


class NearestSerializer(OutputSerializer[Any]):
    """The nearest ask that the policy would approve at once."""

    count = serializers.IntegerField()
    until = serializers.DateTimeField()


class CountChangeSerializer(OutputSerializer[Any]):
    """GPUs before and after."""

    before = serializers.IntegerField()
    after = serializers.IntegerField()


class CostChangeSerializer(OutputSerializer[Any]):
    """USD a day before and after."""

    before = serializers.CharField()
    after = serializers.CharField()


class MonthSerializer(OutputSerializer[Any]):
    """What a month's budget would have left, in USD and, where they have a limit, in GPU-hours."""

    month = serializers.CharField()
    limit_usd = serializers.CharField()
    left_before = serializers.CharField()
    left_after = serializers.CharField()
    gpu_hours_limit = serializers.CharField(allow_null=True)
    gpu_hours_left_before = serializers.CharField(allow_null=True)
    gpu_hours_left_after = serializers.CharField(allow_null=True)


class PreviewSerializer(OutputSerializer[Any]):
    """What would happen: nothing was stored."""

    policy = serializers.IntegerField()
    offering = serializers.CharField()
    name = serializers.CharField()
    formula = serializers.CharField(
        help_text="How the price comes about: at which price of which day."
    )
    reversible_minutes = serializers.IntegerField(allow_null=True)
    after_approval = serializers.ListField(child=serializers.CharField())
    answer = AnswerSerializer()
    nearest_automatic = NearestSerializer(allow_null=True)
    automatic_from = serializers.DateTimeField(
        allow_null=True,
        help_text="From when the same ask would be automatic, as far as is known.",
    )
    fits_from = serializers.DateTimeField(
        allow_null=True,
        help_text="From when all of it is free for as long, where it is not in its own time; as far as is known.",
    )
    remedies = RemedySerializer(
        many=True,
        help_text="What would make it automatic: at least one, unless it is automatic.",
    )
    quota = CountChangeSerializer()
    usd_per_day = CostChangeSerializer()
    budget = MonthSerializer(many=True)
    over_budget = serializers.CharField(help_text=OVER_BUDGET)
    usual_seconds = serializers.IntegerField(
        allow_null=True,
        help_text="How long its deciders usually take; null where too little is known.",
    )
    empty_seats = serializers.ListField(
        child=serializers.CharField(),
        help_text="Seats of the route in which nobody is known to decide.",
    )
    unread_seats = serializers.ListField(
        child=serializers.CharField(),
        help_text="Seats of which a new installation has not read from the directory yet who has them.",
    )


class PolicySerializer(OutputSerializer[PolicyVersion]):
    """A version of the policy; every limit is inclusive, all times are hours or days as named."""

    number = serializers.IntegerField()
    active_from = serializers.DateTimeField()
    reason = serializers.CharField(source="why", help_text="Why it came into force.")
    document = PolicyWholeSerializer(source="whole")


class OptionSerializer(OutputSerializer[Any]):
    """One line of a drop-down."""

    value = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    disabled = serializers.BooleanField()
    reason = serializers.CharField()


class OptionsSerializer(OutputSerializer[Any]):
    """The lines of a drop-down."""

    results = OptionSerializer(many=True)


class FlavorOptionQuery(StrictSerializer):
    """For whom."""

    team = Text(max_length=40)
