"""What teams hold."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.exceptions import ErrorDetail
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from accounts.replay import Answer, answer_once
from allocations import provisioners
from allocations.ends import actions as ends
from allocations.models import LONGEST_REASON, Allocation
from allocations.presenting import Effect, Unit, effect, effect_of_machines
from allocations.schedule import State, WhenOver
from allocations.webhooks import AllocationEventSerializer
from notebooks.servers.models import NotebookServer
from web.output import OutputSerializer
from web.strict import Choice, Gpus, Integer, PageQuery, StrictSerializer, Text

MAX_MACHINES = 1_000
STEPS = ("reminder", "end", "grace_end", "drain", "stop")


class NextStepSerializer(OutputSerializer[Any]):
    """Something that will happen to a holding."""

    at = serializers.DateTimeField()
    what = serializers.ChoiceField(choices=STEPS)
    words = serializers.CharField()


class StillRunningSerializer(OutputSerializer[Any]):
    """A job on GPUs that are no longer held; it is stopped at `stop_at`, or may finish where that is null."""

    job = serializers.CharField()
    flavor = serializers.CharField()
    gpus = serializers.IntegerField()
    priority = serializers.IntegerField()
    since = serializers.CharField()
    stop_at = serializers.DateTimeField(allow_null=True)


class AllocationSerializer(AllocationEventSerializer):
    """What a team holds or held: GPUs of a flavor, or another offering, for which `flavor` is null; money is USD."""

    state = serializers.SerializerMethodField()
    product = serializers.CharField(
        source="flavor.product", default=None, allow_null=True
    )
    tenancy = serializers.IntegerField(source="tenancy_id", allow_null=True)
    price_per_gpu_hour = serializers.DecimalField(max_digits=9, decimal_places=4)
    usd_in_all = serializers.DecimalField(max_digits=14, decimal_places=2)
    hindrance = serializers.CharField(
        help_text="What stands in a booking's way as things are; empty for nothing."
    )
    kept_until = serializers.DateTimeField(
        help_text="With its grace, which costs nothing."
    )
    when_over = serializers.ChoiceField(
        choices=[(each.value, each.words) for each in WhenOver],
        help_text="What becomes of work that still runs when it has ended.",
    )
    next_steps = serializers.SerializerMethodField()

    @extend_schema_field(
        serializers.ChoiceField(choices=[(each.value, each.words) for each in State])
    )
    def get_state(self, row: Allocation) -> str:
        """Where it stands between its grant and its end."""
        return provisioners.state_of(row, now=timezone.now()).value

    @extend_schema_field(NextStepSerializer(many=True))
    def get_next_steps(self, row: Allocation) -> Any:
        """What happens to it from now on, with its dates; nothing once it has ended."""
        return NextStepSerializer(row.next_steps(timezone.now()), many=True).data


class AllocationQuery(PageQuery):
    """Which allocations to list."""

    team = Text(required=False, max_length=40)
    offering = Text(
        required=False,
        max_length=20,
        help_text="Only of this key of the catalogue: `gpus`.",
    )
    held = Choice(
        choices=["true", "false"],
        required=False,
        help_text="Only what is held now, or only what ended. What is booked is neither.",
    )


class EndEarlySerializer(StrictSerializer):
    """The end of what is held, before its date."""

    reason = Text(
        required=False,
        max_length=LONGEST_REASON,
        help_text="Why, from who is not of the team: its members are told that it is taken back.",
    )


class GiveBackPreviewSerializer(StrictSerializer):
    """How many would go back: GPUs, or machines of a reservation; not both."""

    gpus = Gpus(
        required=False, help_text="GPUs of a pool; all of them unless told otherwise."
    )
    machines = Integer(
        required=False,
        min_value=1,
        max_value=MAX_MACHINES,
        help_text="Machines of a capacity reservation.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Raises ValidationError where both are given."""
        if {"gpus", "machines"} <= attrs.keys():
            both = ErrorDetail("Give GPUs or machines, not both.", "one_of_two")
            raise serializers.ValidationError({"machines": [both]})
        return attrs


class GiveBackSerializer(EndEarlySerializer, GiveBackPreviewSerializer):
    """How many to give back: GPUs, or machines of a reservation; not both."""


class GivenBackSerializer(OutputSerializer[Any]):
    """What is left of an allocation; null when nothing is."""

    rest = AllocationSerializer(allow_null=True)


class NotebookStoppedSerializer(OutputSerializer[NotebookServer]):
    """A notebook that is stopped at once, as it was granted with what goes back; its volumes stay."""

    id = serializers.IntegerField()
    title = serializers.CharField()
    owner = serializers.CharField(source="owner.name")


class GiveBackEffectSerializer(OutputSerializer[Effect]):
    """What giving back would change: numbers and USD before and after, and what becomes of work."""

    unit = serializers.ChoiceField(
        choices=list(Unit), help_text="GPUs of a pool, or machines of a reservation."
    )
    count = serializers.IntegerField(help_text="That go back.")
    stays = serializers.IntegerField(
        help_text="Of what was granted, that stay until the end."
    )
    until = serializers.DateTimeField()
    held = serializers.IntegerField(
        help_text="GPUs of this kind that the team may use in the namespace now, or all machines of the reservation."
    )
    held_after = serializers.IntegerField()
    usd_per_day = serializers.DecimalField(
        max_digits=14, decimal_places=2, help_text="Of all that the team holds now."
    )
    usd_per_day_after = serializers.DecimalField(max_digits=14, decimal_places=2)
    freed_usd = serializers.DecimalField(
        max_digits=14, decimal_places=2, help_text="In the budgets, until the end."
    )
    in_use = serializers.CharField(
        help_text="What becomes of work on them; empty where nobody has looked."
    )
    notebook = NotebookStoppedSerializer(source="stops", allow_null=True)
    renewal = serializers.IntegerField(
        allow_null=True,
        help_text="A request that waits to keep them longer: it asks for no more than what stays, or is withdrawn.",
    )


class AllocationEndpoint(mixins.ListModelMixin, mixins.RetrieveModelMixin, Endpoint):
    """What the caller's teams hold."""

    queryset = Allocation.objects.none()
    serializer_class = AllocationSerializer
    lookup_value_converter = "int"
    ordering = "-until"
    asks = {"list": AllocationQuery}
    keyed = frozenset({"give_back"})
    previews = frozenset({"preview_giving_back"})
    asking = frozenset({"give_back"})

    def get_queryset(self) -> QuerySet[Allocation]:
        """Those of one's own teams; all of them for leads and auditors."""
        return Allocation.objects.visible_to(self.request.user).described()

    def filter_queryset(self, queryset: Any) -> Any:
        """Those of one team, held or ended, if that was asked for."""
        asked = getattr(self, "asked", {})
        if "team" in asked:
            queryset = queryset.filter(team__slug=asked["team"])
        if "offering" in asked:
            queryset = queryset.filter(offering=asked["offering"])
        if "held" in asked:
            queryset = (
                queryset.live()
                if asked["held"] == "true"
                else queryset.exclude(ended_at=None)
            )
        return queryset

    @extend_schema(request=GiveBackSerializer, responses=GivenBackSerializer)
    @action(detail=True, methods=["post"], url_path="give-back")
    def give_back(self, request: Request, pk: int) -> Response:
        """Give some or all of it back now; its money is let go."""
        held, wanted = self.get_object(), self.body(GiveBackSerializer)
        return answer_once(request, lambda: self._return(held, wanted))

    @extend_schema(
        request=GiveBackPreviewSerializer, responses=GiveBackEffectSerializer
    )
    @action(detail=True, methods=["post"], url_path="give-back/preview")
    def preview_giving_back(self, request: Request, pk: int) -> Response:
        """What giving back some or all GPUs of a pool, or machines of a reservation, would change; stores nothing."""
        held, now = self.get_object(), timezone.now()
        changes = _effect(held, self.body(GiveBackPreviewSerializer), now=now)
        return Response(self.shown(changes, GiveBackEffectSerializer))

    def _return(self, held: Allocation, wanted: Mapping[str, Any]) -> Answer:
        now, reason = timezone.now(), wanted.get("reason", "")
        if "machines" in wanted:
            rest = ends.give_back_machines(
                held.pk, wanted["machines"], by=self.caller, now=now, reason=reason
            )
        else:
            rest = ends.give_back(
                held.pk,
                gpus=wanted.get("gpus"),
                by=self.caller,
                now=now,
                reason=reason,
            )
        return Answer(
            {"rest": self.shown(rest, AllocationSerializer) if rest else None}
        )


def _effect(held: Allocation, wanted: Mapping[str, Any], *, now: datetime) -> Effect:
    """What giving back so many of either would change; raises Conflict where they cannot go back."""
    if "machines" in wanted:
        ends.check_machines(held, wanted["machines"], now=now)
        return effect_of_machines(held, wanted["machines"], now=now)
    _, gpus = ends.checked(held, wanted.get("gpus"), now=now)
    return effect(held, gpus, now=now)
