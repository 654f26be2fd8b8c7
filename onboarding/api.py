"""The front door: a team on board in one call."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import transaction
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.actions import set_tier
from accounts.api import TeamReadEndpoint, TeamSerializer
from accounts.directory.client import graph
from accounts.endpoints import Endpoint
from accounts.models import Team, User
from accounts.replay import Answer, answer_once, earlier_answer
from approvals.models import Request as Ask
from approvals.requests.serializers import PreviewSerializer, RequestSerializer
from capacity.registry import actions as registry
from fleet.models import Cluster, Environment, Flavor
from onboarding.actions import Brought, Enrolment, Start, ask_directory, enrol
from onboarding.groups import offers
from onboarding.models import Onboarding
from onboarding.preview import Plan, plan_of
from onboarding.team_changes import (
    ClusterEffect,
    Effects,
    TeamChange,
    change_team,
    check_may_change,
    effects,
    group_of_change,
)
from provisioning.api import TenancySerializer
from web.refusals import BadInput, Refused, pointer_to
from web.strict import (
    Choice,
    Gpus,
    Moment,
    PageQuery,
    StrictSerializer,
    Text,
)


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


class TeamChangeSerializer(StrictSerializer):
    """What is to be different about a team."""

    name = Text(
        max_length=60, required=False, help_text="In any script; the short name stays."
    )
    cost_centre = Text(max_length=20, required=False)
    entra_group = Text(
        max_length=36, required=False, help_text="The object id of another group."
    )
    owner = serializers.UUIDField(
        required=False, help_text="The object id of a member of the group."
    )
    tier = Choice(choices=Team.Tier.choices, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Something is to be different."""
        if not attrs:
            raise serializers.ValidationError(
                "Say what is to be different about the team."
            )
        return attrs


class ClusterEffectSerializer(serializers.Serializer[ClusterEffect]):
    """Objects of a namespace that are written again."""

    cluster = serializers.CharField(source="tenancy.cluster.name")
    namespace = serializers.CharField(source="tenancy.namespace")
    objects = serializers.ListField(child=serializers.CharField())


class FieldChangeSerializer(serializers.Serializer[Any]):
    """A field with what it is and what it becomes."""

    field = serializers.CharField()
    before = serializers.CharField()
    after = serializers.CharField()


class TeamEffectsSerializer(serializers.Serializer[Effects]):
    """What changing a team leads to."""

    fields_changed = serializers.SerializerMethodField()
    clusters = ClusterEffectSerializer(many=True)
    joining = serializers.ListField(child=serializers.CharField())
    leaving = serializers.ListField(child=serializers.CharField())
    sentences = serializers.ListField(
        child=serializers.CharField(),
        help_text="Who leads the team from then on, and that nobody has confirmed its cost centre.",
    )

    @extend_schema_field(FieldChangeSerializer(many=True))
    def get_fields_changed(self, found: Effects) -> list[dict[str, str]]:
        """Each field that would be another."""
        return [
            {"field": name, "before": before, "after": after}
            for name, (before, after) in found.fields.items()
        ]


class PlannedSerializer(serializers.Serializer[Any]):
    """An object that would be created."""

    kind = serializers.CharField()
    name = serializers.CharField()
    what = serializers.CharField(source="plain", help_text="What it is for.")


class TeamPlanSerializer(serializers.Serializer[Plan]):
    """A team as it would be: nothing was stored."""

    slug = serializers.CharField(
        help_text="Its short name, in addresses and on clusters."
    )
    namespace = serializers.CharField()
    entra_group_name = serializers.CharField(source="group_name")
    members = serializers.SerializerMethodField()
    sentences = serializers.ListField(
        child=serializers.CharField(),
        help_text="What is worth knowing before, such as that nobody has confirmed its cost centre.",
    )
    objects = PlannedSerializer(many=True)
    start = PreviewSerializer(
        allow_null=True,
        help_text="What would be said to its first GPUs; null where it starts without.",
    )

    def get_members(self, plan: Plan) -> int | None:
        """How many people are in its group; null where the directory does not say now."""
        return None if plan.people.unknown else plan.people.count


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


class ImagesSerializer(serializers.Serializer[Any]):
    """A team's access to the registry of images."""

    repositories = serializers.CharField(
        help_text="Where the team's images are; empty while that is not known."
    )
    sentence = serializers.CharField(help_text="What its group may do, or why not yet.")


class TeamEndpoint(TeamReadEndpoint):
    """Teams, and bringing one on board."""

    asks = {"list": PageQuery, "members": PageQuery}
    keyed = frozenset({"create", "look_again_at_images"})
    bodyless = frozenset({"look_again_at_images"})
    previews = frozenset({"preview", "preview_change"})
    asking = frozenset({"create"})
    outside = frozenset({"create", "partial_update", "preview", "preview_change"})

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

    @extend_schema(
        operation_id="teams_preview",
        request=NewTeamSerializer,
        responses=TeamPlanSerializer,
    )
    def preview(self, request: Request) -> Response:
        """What bringing a team on board would make, and what would be said to its first ask; nothing is stored."""
        enrolment = enrolment_from(self.body(NewTeamSerializer))
        brought = ask_directory(enrolment, by=self.caller, graph=graph())
        with pointing_into_start():
            plan = plan_of(
                enrolment,
                brought=brought,
                by=self.caller,
                graph=graph(),
                now=timezone.now(),
            )
        return Response(TeamPlanSerializer(plan).data)

    @extend_schema(request=TeamChangeSerializer, responses=TeamSerializer)
    def partial_update(self, request: Request, slug: str) -> Response:
        """Change the team; what is left out stays. Its tier is set by platform leads only."""
        team, wanted = self.get_object(), self.body(TeamChangeSerializer)
        change = self._change(team, wanted)
        with transaction.atomic():
            if change != TeamChange():
                change_team(team, change, by=self.caller, now=timezone.now())
            if "tier" in wanted:
                set_tier(team, wanted["tier"], by=self.caller, now=timezone.now())
        return Response(self.shown(self.get_object(), TeamSerializer))

    @extend_schema(
        operation_id="teams_preview_change",
        request=TeamChangeSerializer,
        responses=TeamEffectsSerializer,
    )
    def preview_change(self, request: Request, slug: str) -> Response:
        """What changing the team would lead to; writes nothing."""
        team = self.get_object()
        check_may_change(team, self.caller)
        wanted = self.body(TeamChangeSerializer)
        return Response(
            TeamEffectsSerializer(effects(team, self._change(team, wanted))).data
        )

    def _change(self, team: Team, wanted: dict[str, Any]) -> TeamChange:
        """What the body changes, with its group asked of the directory for those who may change the team."""
        if wanted.keys() - {"tier"}:
            check_may_change(team, self.caller)
        oid = str(wanted.get("entra_group", ""))
        return TeamChange(
            name=wanted.get("name", ""),
            cost_centre=wanted.get("cost_centre", ""),
            group=group_of_change(team, oid, by=self.caller, graph=graph())
            if oid
            else None,
            owner=owner_from(str(wanted["owner"])) if "owner" in wanted else None,
        )

    @extend_schema(operation_id="teams_onboarding", responses=OnboardedSerializer)
    def onboarding(self, request: Request, slug: str) -> Response:
        """How far the team's coming on board is."""
        rows = Onboarding.objects.visible_to(self.request.user).select_related(
            "team", "tenancy__cluster"
        )
        return Response(
            self.shown(get_object_or_404(rows, team__slug=slug), OnboardedSerializer)
        )

    @extend_schema(
        operation_id="teams_images_look_again",
        request=None,
        responses=ImagesSerializer,
    )
    def look_again_at_images(self, request: Request, slug: str) -> Response:
        """Have a worker look at the team's access to the registry now, parked or not (platform leads)."""
        team = self.get_object()
        return answer_once(request, lambda: self._look_again_at_images(team))

    def _look_again_at_images(self, team: Team) -> Answer:
        row = registry.try_again(team, by=self.caller, now=timezone.now())
        return Answer(ImagesSerializer(row).data)

    def _enrol(self, enrolment: Enrolment, brought: Brought) -> Answer:
        with pointing_into_start():
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


@contextmanager
def pointing_into_start() -> Iterator[None]:
    """Have what is refused about the first GPUs point to where the body has it; actions name the field alone."""
    try:
        yield
    except Refused as refused:
        if refused.field in StartSerializer().fields:
            refused.pointer = pointer_to("start", refused.field)
        raise


def owner_from(oid: str) -> User:
    """The person with this object id who has signed in; raises BadInput."""
    found = User.objects.filter(oid=oid, is_active=True, pipelines_of=None).first()
    if found is None:
        raise BadInput(
            "Nobody of this object id has signed in.",
            code="no_such_person",
            field="owner",
        )
    return found


def enrolment_from(said: dict[str, Any]) -> Enrolment:
    """What the body says, with its cluster and flavor; raises BadInput naming the field."""
    cluster = (
        Cluster.objects.not_of_others(None).filter(name=said.pop("cluster")).first()
    )
    if cluster is None:
        raise BadInput(
            "There is no such cluster.", code="no_such_cluster", field="cluster"
        )
    start = said.pop("start", None)
    if start is None:
        return Enrolment(cluster=cluster, **said)
    name = start.pop("flavor")
    flavor = (
        Flavor.objects.select_related("cluster")
        .filter(cluster=cluster, name=name, dedicated_to=None)
        .first()
    )
    if flavor is None:
        raise BadInput(
            "The cluster has no such flavor.",
            code="no_such_flavor",
            field="flavor",
            pointer=pointer_to("start", "flavor"),
        )
    return Enrolment(cluster=cluster, start=Start(flavor=flavor, **start), **said)
