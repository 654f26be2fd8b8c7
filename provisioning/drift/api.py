"""What was changed on clusters from elsewhere, over the API, and what platform leads do about it."""

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import TeamNameSerializer
from accounts.endpoints import Endpoint
from accounts.replay import Answer, answer_once
from fleet.models import Cluster
from provisioning.drift import actions as drift_actions
from provisioning.drift import brake
from provisioning.drift.comparing import What
from provisioning.models import Drift
from web.strict import Choice, Moment, PageQuery, StrictSerializer, Text

Act = Callable[[int], object]


class FieldSerializer(serializers.Serializer[Any]):
    """One field that differs; null where it is absent. `who` is the field manager that owns it."""

    path = serializers.CharField()
    wanted = serializers.JSONField(allow_null=True)
    live = serializers.JSONField(allow_null=True)
    who = serializers.CharField()


class DriftSerializer(serializers.Serializer[Drift]):
    """One object that is not as it was made, in words and field by field, and what became of it."""

    id = serializers.IntegerField()
    team = TeamNameSerializer(source="tenancy.team")
    cluster = serializers.CharField(source="tenancy.cluster.name")
    tenancy = serializers.IntegerField(source="tenancy_id")
    kind = serializers.CharField()
    namespace = serializers.CharField()
    name = serializers.CharField()
    what = serializers.ChoiceField(choices=[what.value for what in What])
    sentence = serializers.CharField()
    fields_that_differ = FieldSerializer(many=True, source="fields")
    who = serializers.CharField()
    operation = serializers.CharField()
    since = serializers.DateTimeField()
    first_seen_at = serializers.DateTimeField()
    state = serializers.ChoiceField(choices=Drift.State.choices)
    contested = serializers.BooleanField()
    repair_asked_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    ended_by = serializers.CharField()
    reason = serializers.CharField()
    ignored_until = serializers.DateTimeField(allow_null=True)
    content = serializers.CharField()


class DriftQuery(PageQuery):
    """Which drift to list."""

    team = Text(required=False, max_length=40)
    cluster = Text(required=False, max_length=40)
    state = Choice(choices=Drift.State.values, required=False)


class AdoptSerializer(StrictSerializer):
    """The `content` of the drift that was looked at: what was changed once more since is not taken over unseen."""

    seen = Text(max_length=16)


class IgnoreSerializer(StrictSerializer):
    """Why it is left alone, and until when."""

    reason = Text(max_length=drift_actions.LONGEST_REASON)
    until = Moment()


class RepairBrakeSerializer(serializers.Serializer[Cluster]):
    """Whether repairs on a cluster have stopped, since when and why."""

    name = serializers.CharField()
    on_drift = serializers.ChoiceField(choices=Cluster.OnDrift.choices)
    braked_at = serializers.DateTimeField(allow_null=True)
    brake_reason = serializers.CharField()


class DriftEndpoint(mixins.ListModelMixin, mixins.RetrieveModelMixin, Endpoint):
    """Drift on the clusters: of one's own teams, of all for leads and auditors."""

    queryset = Drift.objects.none()
    serializer_class = DriftSerializer
    lookup_value_converter = "int"
    asks = {"list": DriftQuery}
    keyed = frozenset({"repair", "adopt", "give_up", "ignore", "take_up"})
    bodyless = frozenset({"give_up", "repair", "take_up"})

    def get_queryset(self) -> QuerySet[Drift]:
        """What the caller may see."""
        return Drift.objects.visible_to(self.request.user).select_related(
            "tenancy__team", "tenancy__cluster"
        )

    def filter_queryset(self, queryset: Any) -> Any:
        """Of one team, of one cluster, in one state, as asked."""
        asked = getattr(self, "asked", {})
        names = {
            "team": "tenancy__team__slug",
            "cluster": "tenancy__cluster__name",
            "state": "state",
        }
        return queryset.filter(
            **{names[key]: asked[key] for key in names if key in asked}
        )

    @extend_schema(request=None, responses=DriftSerializer)
    @action(detail=True, methods=["post"])
    def repair(self, request: Request, pk: int) -> Response:
        """Have it put right at once (platform leads); harmless to repeat."""
        return self._change(
            lambda found: drift_actions.repair(
                found, by=self.caller, now=timezone.now()
            )
        )

    @extend_schema(request=AdoptSerializer, responses=DriftSerializer)
    @action(detail=True, methods=["post"])
    def adopt(self, request: Request, pk: int) -> Response:
        """Want from now on what stands on the cluster (platform leads): amounts only, never GPUs or guards."""
        seen = self.body(AdoptSerializer)["seen"]
        return self._change(
            lambda found: drift_actions.adopt(
                found, by=self.caller, now=timezone.now(), seen=seen
            )
        )

    @extend_schema(request=None, responses=DriftSerializer)
    @action(detail=True, methods=["post"], url_path="give-up")
    def give_up(self, request: Request, pk: int) -> Response:
        """Want again what the portal would want by itself (platform leads)."""
        return self._change(
            lambda found: drift_actions.give_up(
                found, by=self.caller, now=timezone.now()
            )
        )

    @extend_schema(request=IgnoreSerializer, responses=DriftSerializer)
    @action(detail=True, methods=["post"])
    def ignore(self, request: Request, pk: int) -> Response:
        """Leave the differing fields alone until a time (platform leads)."""
        said = self.body(IgnoreSerializer)
        return self._change(
            lambda found: drift_actions.ignore(
                found, by=self.caller, now=timezone.now(), **said
            )
        )

    @extend_schema(request=None, responses=DriftSerializer)
    @action(detail=True, methods=["post"], url_path="take-up")
    def take_up(self, request: Request, pk: int) -> Response:
        """Leave it alone no longer (platform leads)."""
        return self._change(
            lambda found: drift_actions.take_up(
                found, by=self.caller, now=timezone.now()
            )
        )

    def _change(self, act: Act) -> Response:
        found = self.get_object().pk

        def change() -> Answer:
            act(found)
            return Answer(self.shown(self.get_object(), DriftSerializer))

        return answer_once(self.request, change)


class RepairBrakeEndpoint(Endpoint):
    """The brake of a cluster: repairs stop by themselves when too much differs at once."""

    queryset = Cluster.objects.all()
    serializer_class = RepairBrakeSerializer
    lookup_field = "name"
    keyed = frozenset({"release"})
    bodyless = frozenset({"release"})

    @extend_schema(request=None, responses=RepairBrakeSerializer)
    def release(self, request: Request, name: str) -> Response:
        """Let the repairs of the cluster go on (platform leads)."""
        found = get_object_or_404(Cluster, name=name).pk

        def change() -> Answer:
            return Answer(
                self.shown(
                    brake.release(found, by=self.caller, now=timezone.now()),
                    RepairBrakeSerializer,
                )
            )

        return answer_once(request, change)
