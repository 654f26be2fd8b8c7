"""The front door: a team on board in one call."""

from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import TeamReadEndpoint, TeamSerializer
from accounts.directory import graph
from accounts.endpoints import Endpoint
from accounts.refusals import BadInput, Refused
from accounts.replay import Answer, answer_once, earlier_answer
from accounts.strict import Choice, Gpus, Moment, PageQuery, StrictSerializer, Text
from approvals.models import Request as Ask
from approvals.serializers import RequestSerializer
from fleet.models import Cluster, Environment, Flavor
from onboarding.actions import Brought, Enrolment, Start, ask_directory, enrol
from onboarding.groups import offers
from onboarding.models import Onboarding
from provisioning.api import TenancySerializer


class StartSerializer(StrictSerializer):
    """The GPUs to start with."""

    flavor = Text(max_length=40, help_text="A flavor of the cluster.")
    gpus = Gpus()
    until = Moment()
    purpose = Choice(choices=Ask.Purpose.choices)
    reason = Text(required=False, allow_blank=True)


class NewTeamSerializer(StrictSerializer):
    """A team to bring on board."""

    name = Text(max_length=60)
    entra_group = Text(max_length=36, help_text="The group's object id.")
    cost_centre = Text(max_length=20)
    project = Text(max_length=40)
    environment = Choice(choices=Environment.choices)
    cluster = Text(max_length=40)
    start = StartSerializer(required=False, allow_null=True)


class OnboardedSerializer(serializers.Serializer[Onboarding]):
    """What was stored: the tenancy's conditions say how far the cluster is."""

    team = TeamSerializer()
    tenancy = TenancySerializer()
    request = RequestSerializer(allow_null=True)
    submitted_at = serializers.DateTimeField()
    seconds = serializers.FloatField(
        allow_null=True, help_text="Until everything was true; null before that."
    )


class GroupSerializer(serializers.Serializer[Any]):
    """A group of the directory as a line of a drop-down."""

    value = serializers.CharField(source="oid")
    label = serializers.CharField(source="name")  # type: ignore[assignment]
    description = serializers.CharField()
    disabled = serializers.SerializerMethodField()
    reason = serializers.CharField(source="why_not")

    def get_disabled(self, offer: Any) -> bool:
        """Whether the caller may not bring it."""
        return not offer.is_free


class GroupsSerializer(serializers.Serializer[Any]):
    """Groups of the directory."""

    results = GroupSerializer(many=True)


class GroupQuery(StrictSerializer):
    """What the group's name begins with; one's own groups for nothing."""

    q = Text(required=False, allow_blank=True, max_length=100)


class TeamEndpoint(TeamReadEndpoint):
    """Teams, and bringing one on board."""

    asks = {"list": PageQuery, "members": PageQuery}
    keyed = frozenset({"create"})
    asking = frozenset({"create"})
    outside = frozenset({"create"})

    @extend_schema(request=NewTeamSerializer, responses={201: OnboardedSerializer})
    def create(self, request: Request) -> Response:
        """Bring a team on board: team, tenancy and first ask in one transaction."""
        if (earlier := earlier_answer(request)) is not None:
            return earlier
        enrolment = enrolment_from(self.body(NewTeamSerializer))
        try:
            # The directory is asked before the transaction begins.
            brought = ask_directory(enrolment, by=self.caller, graph=graph())
        except Refused:
            # The same call may have been answered while the directory was asked.
            if (earlier := earlier_answer(request)) is not None:
                return earlier
            raise
        return answer_once(request, lambda: self._enrol(enrolment, brought))

    @extend_schema(operation_id="teams_onboarding", responses=OnboardedSerializer)
    def onboarding(self, request: Request, slug: str) -> Response:
        """How far the team's coming on board is."""
        rows = Onboarding.objects.visible_to(self.request.user).select_related("team", "tenancy__cluster")
        return Response(self.shown(get_object_or_404(rows, team__slug=slug), OnboardedSerializer))

    def _enrol(self, enrolment: Enrolment, brought: Brought) -> Answer:
        done = enrol(enrolment, brought=brought, by=self.caller, now=timezone.now())
        body = self.shown(Onboarding.objects.get(pk=done.pk), OnboardedSerializer)
        return Answer(body, 201, f"/api/v1/teams/{done.team.slug}/")


class GroupEndpoint(Endpoint):
    """Groups of the directory."""

    serializer_class = GroupSerializer
    asks = {"list": GroupQuery}
    outside = frozenset({"list"})

    @extend_schema(operation_id="directory_groups", responses=GroupsSerializer)
    def list(self, request: Request) -> Response:
        """Groups that the caller may bring, and why not the others."""
        found = offers(self.caller, text=self.asked.get("q", ""), graph=graph())
        return Response(GroupsSerializer({"results": found}).data)


def enrolment_from(said: dict[str, Any]) -> Enrolment:
    """What the body says, with its cluster and flavor; raises BadInput naming the field."""
    cluster = Cluster.objects.not_of_others(None).filter(name=said.pop("cluster")).first()
    if cluster is None:
        raise BadInput("There is no such cluster.", code="no_such_cluster", field="cluster")
    start = said.pop("start", None)
    if start is None:
        return Enrolment(cluster=cluster, **said)
    name = start.pop("flavor")
    flavor = (
        Flavor.objects.select_related("cluster").filter(cluster=cluster, name=name, dedicated_to=None).first()
    )
    if flavor is None:
        raise BadInput("The cluster has no such flavor.", code="no_such_flavor", field="start/flavor")
    return Enrolment(cluster=cluster, start=Start(flavor=flavor, **start), **said)
