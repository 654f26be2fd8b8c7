"""A team's work over the API."""

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import TeamNameSerializer
from accounts.current_user import visible_team
from accounts.endpoints import Endpoint
from accounts.models import Team
from web.strict import StrictSerializer, Text
from workloads.board import work_of_team
from workloads.explanations import Action, Outlook
from workloads.gpu_use.serializers import BusySerializer
from workloads.listing import State
from workloads.stopping import Target, stop_work


class WhatToDoSerializer(serializers.Serializer[Any]):
    """One thing to do: what it is, and the words for its button."""

    action = serializers.ChoiceField(choices=[each.value for each in Action])
    label = serializers.CharField()  # type: ignore[assignment]


class WhySerializer(serializers.Serializer[Any]):
    """Why it is in this state: what, since when, where in line, when, and what you can do."""

    code = serializers.CharField(
        help_text="A stable name of the reason, such as `quota_taken` or `running`."
    )
    outlook = serializers.ChoiceField(
        choices=[each.value for each in Outlook],
        help_text="Whether waiting helps: `wait`, `change` (you), `escalate` (somebody else), `never`.",
    )
    what = serializers.CharField()
    since = serializers.DateTimeField()
    line = serializers.CharField(
        help_text="Where it is in the line of its queue, in words."
    )
    position = serializers.IntegerField(
        allow_null=True, help_text="0 is the head of the line."
    )
    when = serializers.CharField(help_text="When it starts, or that nobody can know.")
    at = serializers.DateTimeField(
        allow_null=True, help_text="When it goes on, where Kueue says so."
    )
    latest_at = serializers.DateTimeField(
        allow_null=True,
        help_text="By when it starts unless other work goes first, from the time limits of all that is ahead of it; "
        "null where nobody can say.",
    )
    do = serializers.CharField()
    step = WhatToDoSerializer(allow_null=True)
    detail = serializers.CharField(
        help_text="What Kubernetes said, for experts; may be empty."
    )


class SlicesField(serializers.DictField):
    """MIG slices by profile."""

    child = serializers.IntegerField()

    def to_representation(self, value: Any) -> dict[str, int]:
        """How many there are of each."""
        return dict(value)


class WorkLineSerializer(serializers.Serializer[Any]):
    """One piece of work, by whatever way it was started."""

    cluster = serializers.CharField()
    namespace = serializers.CharField(source="key.namespace")
    kind = serializers.CharField(
        source="key.kind", help_text="Job, JobSet, Pod, … as Kubernetes calls it."
    )
    name = serializers.CharField(source="key.name")
    uid = serializers.CharField(
        source="key.uid", help_text="Send it back to stop this one and no other."
    )
    state = serializers.ChoiceField(choices=[each.value for each in State])
    gpus = serializers.IntegerField(
        help_text="What all its pods together ask for, whole GPUs and MIG slices."
    )
    slices = SlicesField(
        help_text='Those of them that are MIG slices, by profile: `{"1g.10gb": 2}`.'
    )
    held = serializers.IntegerField(help_text="GPUs and slices that it has now.")
    flavors = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField(source="created", allow_null=True)
    run = serializers.IntegerField(
        allow_null=True,
        help_text="The number of the run that it is; null for what was not started as one.",
    )
    why = WhySerializer()
    gpu_use = serializers.SerializerMethodField()

    @extend_schema_field(BusySerializer(allow_null=True))
    def get_gpu_use(self, one: Any) -> Any:
        """How busy its GPUs are; null while it holds none on a node."""
        found = self.root.instance.busy(one)  # type: ignore[union-attr]
        return None if found is None else BusySerializer(found).data


class SeenSerializer(serializers.Serializer[Any]):
    """How old what is told of a cluster is."""

    cluster = serializers.CharField(source="cluster.name")
    seen_at = serializers.DateTimeField(
        source="heard_at",
        allow_null=True,
        help_text="Null: not everything has been read yet.",
    )
    silent_since = serializers.DateTimeField(allow_null=True)
    message = serializers.CharField(
        help_text="What the cluster or the connection said; may be empty."
    )


class TeamWorkSerializer(serializers.Serializer[Any]):
    """Everything of a team that runs, waits or has just ended."""

    team = TeamNameSerializer()
    held = serializers.IntegerField(help_text="GPUs and slices that all of it has now.")
    clusters = SeenSerializer(many=True)
    work = WorkLineSerializer(many=True)
    left_out = serializers.IntegerField(
        help_text="How many that ended longer ago are not listed."
    )


class TargetSerializer(StrictSerializer):
    """Which piece of work, as its line names it."""

    cluster = Text(max_length=63)
    namespace = Text(max_length=63)
    kind = Text(max_length=63)
    name = Text(max_length=253)
    uid = Text(max_length=63)


class WorkEndpoint(Endpoint):
    """What runs in the namespaces of the teams that the caller may see."""

    queryset = Team.objects.none()
    serializer_class = TeamWorkSerializer
    lookup_field = "slug"
    lookup_value_converter = "slug"

    def get_queryset(self) -> QuerySet[Team]:
        """Those of one's own teams; all of them for leads and auditors."""
        return Team.objects.visible_to(self.request.user)

    def get_object(self) -> Team:
        """The team in the address; raises Http404 for one that the caller may not see."""
        return visible_team(self.caller, self.kwargs["slug"])

    @extend_schema(operation_id="work_of_team", responses=TeamWorkSerializer)
    def retrieve(self, request: Request, slug: str) -> Response:
        """A team's work on every cluster, whoever started it, each with the reason for its state.

        Told from the portal's own copy, which is kept by watches: no cluster is asked.
        """
        board = work_of_team(self.get_object(), by=self.caller, now=timezone.now())
        return Response(self.shown(board, TeamWorkSerializer))

    @extend_schema(
        operation_id="stop_work", request=TargetSerializer, responses=TeamWorkSerializer
    )
    @action(detail=True, methods=["post"])
    def stop(self, request: Request, slug: str) -> Response:
        """End a piece of work, also one that was made with kubectl; its GPUs are free once its pods had their grace."""
        team, now = self.get_object(), timezone.now()
        stop_work(team, Target(**self.body(TargetSerializer)), by=self.caller, now=now)
        return Response(
            self.shown(work_of_team(team, by=self.caller, now=now), TeamWorkSerializer)
        )
