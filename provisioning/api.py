"""Making it true: a team's places on clusters, with what was seen of them."""

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import TeamNameSerializer
from accounts.endpoints import Endpoint
from fleet.models import Environment
from provisioning.actions import look_again
from provisioning.clusters.access import use_of
from provisioning.models import Tenancy
from provisioning.reach import ways_in, ways_out
from provisioning.stages import Stage
from web.output import OutputSerializer
from web.strict import PageQuery, Text

STAGES = [(stage.value, stage.words) for stage in Stage]
OBJECT_STATES = ["true", "changed", "failed", "waiting", "committed"]


class ConditionSerializer(OutputSerializer[Any]):
    """A condition as Kubernetes has them."""

    type = serializers.CharField()
    status = serializers.ChoiceField(choices=["True", "False", "Unknown"])
    reason = serializers.CharField()
    message = serializers.CharField()
    since = serializers.DateTimeField()


class SeenObjectSerializer(OutputSerializer[Any]):
    """One object of the tenancy and how it was last seen."""

    kind = serializers.CharField()
    name = serializers.CharField()
    namespace = serializers.CharField()
    state = serializers.ChoiceField(choices=OBJECT_STATES)
    since = serializers.DateTimeField()
    message = serializers.CharField()


class QuotaSerializer(OutputSerializer[Any]):
    """GPUs of one flavor: guaranteed, and to borrow when others leave theirs idle."""

    name = serializers.CharField()
    gpus = serializers.IntegerField()
    borrow = serializers.IntegerField()


class TenancyShortSerializer(OutputSerializer[Tenancy]):
    """A team's place on a cluster. It is settled when `observed_generation` has reached `generation` and is true."""

    id = serializers.IntegerField()
    team = TeamNameSerializer()
    cluster = serializers.CharField(source="cluster.name")
    project = serializers.CharField(source="project.slug")
    environment = serializers.ChoiceField(choices=Environment.choices)
    namespace = serializers.CharField()
    generation = serializers.IntegerField()
    observed_generation = serializers.IntegerField()
    is_settled = serializers.BooleanField()
    ready = ConditionSerializer()
    explanation = serializers.CharField(
        help_text="What stands in the way, what to do, and whether it is tried again; empty when nothing does."
    )
    presence = serializers.ChoiceField(choices=STAGES, source="stage")
    is_protected = serializers.BooleanField()
    leaves_at = serializers.DateTimeField(allow_null=True)
    retained_until = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    changed_at = serializers.DateTimeField(allow_null=True)
    last_looked_at = serializers.DateTimeField(allow_null=True)
    true_since = serializers.DateTimeField(allow_null=True)


class TenancySerializer(TenancyShortSerializer):
    """The same with what is wanted and every object that was seen."""

    quotas = serializers.SerializerMethodField()
    conditions = ConditionSerializer(many=True)
    objects = SeenObjectSerializer(many=True, source="objects_seen")

    def get_quotas(self, tenancy: Tenancy) -> list[dict[str, Any]]:
        """What is wanted, by flavor."""
        return [
            QuotaSerializer(quota).data for quota in tenancy.spec.get("flavors", [])
        ]


class HeldKindSerializer(OutputSerializer[Any]):
    """GPUs that are held, and how a pod gets onto their nodes."""

    gpus = serializers.IntegerField()
    flavor = serializers.CharField(source="kind.name")
    resource = serializers.CharField(source="kind.resource")
    node_selector = serializers.DictField(
        source="kind.node_labels", child=serializers.CharField()
    )
    tolerations = serializers.ListField(
        source="kind.tolerations",
        child=serializers.DictField(child=serializers.CharField()),
    )
    growing = serializers.CharField(
        help_text="What happens while too few are ready; empty for a fixed pool."
    )


class UseSerializer(OutputSerializer[Any]):
    """What somebody needs to know to run something in a place."""

    namespace = serializers.CharField()
    queue_label = serializers.CharField(
        help_text="What every job carries to get in line."
    )
    login = serializers.CharField(
        help_text="Commands that make kubectl sign in; empty while no address is known."
    )
    held = HeldKindSerializer(many=True)
    job = serializers.CharField(
        help_text="A first Job in YAML, which runs as it stands."
    )
    logs = serializers.CharField(help_text="The command that shows what it prints.")
    dashboards_url = serializers.CharField()


class WaySerializer(OutputSerializer[Any]):
    """One thing that pods reach, or that reaches them; no ports are all ports."""

    name = serializers.CharField()
    where = serializers.CharField()
    ports = serializers.ListField(child=serializers.IntegerField())
    policy = serializers.CharField(help_text="The network policy that says so.")


class ReachSerializer(OutputSerializer[Any]):
    """What a tenancy's pods may call, and who may call them; everything else is shut."""

    outward = WaySerializer(many=True)
    inward = WaySerializer(many=True)


class TenancyQuery(PageQuery):
    """Which tenancies to list."""

    team = Text(required=False, max_length=40)
    cluster = Text(required=False, max_length=40)


class TenancyEndpoint(mixins.ListModelMixin, mixins.RetrieveModelMixin, Endpoint):
    """The places that the caller may see."""

    queryset = Tenancy.objects.none()
    serializer_class = TenancySerializer
    asking = frozenset({"look_again"})
    lookup_value_converter = "int"
    asks = {"list": TenancyQuery}
    bodyless = frozenset({"look_again"})

    def get_queryset(self) -> QuerySet[Tenancy]:
        """Those of one's own teams; all of them for leads and auditors."""
        return Tenancy.objects.visible_to(self.request.user).select_related(
            "team", "cluster", "project"
        )

    def get_serializer_class(self) -> type[serializers.BaseSerializer[Any]]:
        """Short in a list."""
        return TenancyShortSerializer if self.action == "list" else TenancySerializer

    def filter_queryset(self, queryset: Any) -> Any:
        """Those of one team or cluster, if one is named."""
        asked = getattr(self, "asked", {})
        names = {"team": "team__slug", "cluster": "cluster__name"}
        return queryset.filter(
            **{names[key]: asked[key] for key in names if key in asked}
        )

    @extend_schema(responses=UseSerializer)
    @action(detail=True)
    def use(self, request: Request, pk: int) -> Response:
        """How to use it: sign in, namespace, queue, nodes, and a first job that runs as it stands."""
        return Response(UseSerializer(use_of(self.get_object())).data)

    @extend_schema(request=None, responses={202: TenancySerializer})
    @action(detail=True, methods=["post"], url_path="look-again")
    def look_again(self, request: Request, pk: int) -> Response:
        """Have a worker look at the cluster now; harmless to repeat."""
        tenancy = self.get_object()
        look_again(tenancy, by=self.caller, now=timezone.now())
        return Response(self.shown(tenancy, TenancySerializer), status=202)

    @extend_schema(operation_id="tenancy_reach", responses=ReachSerializer)
    @action(detail=True, methods=["get"], url_path="reach")
    def reach(self, request: Request, pk: int) -> Response:
        """What the pods of a tenancy may call, and who may call them."""
        tenancy = self.get_object()
        spec = tenancy.desired if tenancy.generation else None
        ways = {
            "outward": ways_out(spec) if spec else [],
            "inward": ways_in(spec) if spec else [],
        }
        return Response(self.shown(ways, ReachSerializer))
