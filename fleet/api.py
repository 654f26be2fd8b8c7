"""What exists: clusters and the kinds of GPU they hold."""

from collections.abc import Callable
from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.endpoints import Endpoint
from accounts.models import Team, User
from accounts.replay import Answer, answer_once
from accounts.roles import Permission
from fleet.authority import MAX_LENGTH
from fleet.clusters import actions as cluster_actions
from fleet.egress import LONGEST_HOST, MAX_NAMES, MAX_PORTS, MAX_RANGES
from fleet.flavors import actions as flavor_actions
from fleet.flavors.checks import EFFECTS
from fleet.models import Cluster, Flavor
from fleet.removing import remove_cluster, remove_flavor
from fleet.write_off import write_off
from web.strict import (
    Boolean,
    Choice,
    Integer,
    Moment,
    Money,
    PageQuery,
    StrictSerializer,
    Text,
)


@extend_schema_field(serializers.CharField())
class OwnerField(serializers.Field[Any, Any, Any, Any]):
    """The team to which something is dedicated, without the name for whoever may not see that team."""

    def __init__(self, help_text: str) -> None:
        super().__init__(read_only=True, allow_null=True, help_text=help_text)

    def to_representation(self, team: Team) -> str:
        """The team's slug; empty for one that the caller may not see."""
        may_see: bool = self.context["request"].user.sees_team(team.pk)
        return team.slug if may_see else ""


class VersionCountSerializer(serializers.Serializer[Any]):
    """How many nodes have a version."""

    version = serializers.CharField(help_text="Empty for nodes that do not tell it.")
    nodes = serializers.IntegerField()


class VersionsSerializer(serializers.Serializer[Any]):
    """What the nodes of a kind run: of each component at most 8 versions, that of most nodes first."""

    nodes = serializers.IntegerField(help_text="How many nodes were seen.")
    kubelet = VersionCountSerializer(many=True)
    driver = VersionCountSerializer(
        many=True,
        help_text="NVIDIA's, as GPU Feature Discovery labels the nodes.",
    )
    cuda = VersionCountSerializer(
        many=True, help_text="The newest CUDA that the driver can run."
    )
    runtime = VersionCountSerializer(many=True, help_text="The container runtime.")
    os = VersionCountSerializer(many=True)
    kernel = VersionCountSerializer(many=True)
    product = VersionCountSerializer(
        many=True, help_text="The GPU, as GPU Feature Discovery names it."
    )


class FlavorSerializer(serializers.Serializer[Flavor]):
    """A kind of GPU on a cluster; money is USD."""

    id = serializers.IntegerField()
    cluster = serializers.CharField(source="cluster.name")
    name = serializers.CharField()
    product = serializers.CharField()
    memory_gb = serializers.IntegerField()
    gpus_per_node = serializers.IntegerField()
    capacity_type = serializers.ChoiceField(choices=Flavor.Capacity.choices)
    price_per_gpu_hour = serializers.DecimalField(max_digits=9, decimal_places=4)
    follows_list = serializers.BooleanField(
        help_text="Whether the price goes with Azure's list."
    )
    is_list_price = serializers.BooleanField(
        help_text="Whether the price is that of Azure's list."
    )
    priced_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When the price was read in the list, or set by people; null where that is not known.",
    )
    gpus_total = serializers.IntegerField(
        help_text="What can be had: ready, or once the pool has grown."
    )
    ready = serializers.IntegerField(
        source="gpus_ready", help_text="On nodes that are ready and schedulable."
    )
    cordoned = serializers.IntegerField(
        source="gpus_cordoned",
        help_text="On nodes that are cordoned or do not get ready.",
    )
    can_grow_to = serializers.IntegerField(
        allow_null=True,
        help_text="GPUs of the pool at its autoscaler's maximum; null for one that does not grow.",
    )
    min_nodes = serializers.IntegerField()
    max_nodes = serializers.IntegerField()
    node_pool = serializers.CharField(
        help_text="Its pool of AKS; empty for the one whose labels are those of its nodes."
    )
    azure_nodes = serializers.IntegerField(
        allow_null=True,
        help_text="To how many nodes Azure lets the pool grow; null where that is not known.",
    )
    azure_limit = serializers.CharField(
        help_text="What lets the pool grow no further, where that is less than its autoscaler's maximum."
    )
    growing_minutes = serializers.IntegerField(
        help_text="How long growing usually takes; 0 where nobody said so."
    )
    interruption_hours = serializers.IntegerField(
        help_text="Of spot nodes: hours until one is taken back, on average; 0 where nobody said so."
    )
    allocated = serializers.IntegerField()
    free = serializers.IntegerField(help_text="Of those that can be had.")
    free_and_ready = serializers.IntegerField()
    gpus_seen_at = serializers.DateTimeField(allow_null=True)
    versions = VersionsSerializer(
        allow_null=True,
        source="seen_versions",
        help_text="What its nodes run, those of a pool without nodes as they ran last; null before one was seen.",
    )
    versions_at = serializers.DateTimeField(
        allow_null=True, help_text="When a node of it was seen last."
    )
    is_offered = serializers.BooleanField()
    cpu_per_gpu = serializers.IntegerField()
    memory_gib_per_gpu = serializers.IntegerField()
    node_labels = serializers.DictField(child=serializers.CharField())
    node_taints = serializers.ListField(
        child=serializers.DictField(child=serializers.CharField())
    )
    resource = serializers.CharField(help_text="What nodes count these as.")
    dedicated_to = OwnerField(
        help_text="The team whose own these nodes are, or null; empty for one you may not see."
    )


class SharedServiceShownSerializer(serializers.Serializer[Any]):
    """A service that every team's pods may call."""

    name = serializers.CharField()
    namespace = serializers.CharField()
    labels = serializers.DictField(child=serializers.CharField())
    port = serializers.IntegerField()


class EgressRuleShownSerializer(serializers.Serializer[Any]):
    """Addresses that every team's pods may reach: ranges or DNS names."""

    name = serializers.CharField()
    cidrs = serializers.ListField(child=serializers.CharField(), default=[])
    names = serializers.ListField(
        child=serializers.CharField(), default=[], help_text="DNS names and patterns."
    )
    ports = serializers.ListField(child=serializers.IntegerField())
    inside = serializers.BooleanField(
        default=False, help_text="Whether they are endpoints in a private range."
    )


class PartSerializer(serializers.Serializer[Any]):
    """A part of a cluster that has to work."""

    name = serializers.CharField(
        source="part",
        help_text="API server, Kueue or Volcano, Webhooks, Kueue's or Volcano's settings, Volcano's guards, "
        "Ways out by name, or Nodes.",
    )
    health = serializers.ChoiceField(choices=["good", "bad", "waiting"], source="state")
    words = serializers.CharField()
    since = serializers.DateTimeField(
        allow_null=True,
        help_text="Since when each look has found it so; null if unknown.",
    )


class ClusterSerializer(serializers.Serializer[Cluster]):
    """A cluster; the name of its kubeconfig is shown to who manages clusters, its content to nobody."""

    name = serializers.CharField()
    title = serializers.CharField()
    region = serializers.CharField()
    purpose = serializers.ChoiceField(choices=Cluster.Purpose.choices)
    queueing = serializers.ChoiceField(
        choices=Cluster.Queueing.choices, help_text="Whose queues its jobs wait in."
    )
    delivery = serializers.ChoiceField(choices=Cluster.Delivery.choices)
    git_url = serializers.CharField()
    git_branch = serializers.CharField()
    git_way = serializers.ChoiceField(choices=Cluster.GitWay.choices)
    git_credentials = serializers.SerializerMethodField()
    enabled = serializers.BooleanField()
    health = serializers.ChoiceField(choices=["good", "bad", "waiting"])
    parts = PartSerializer(
        source="seen_parts",
        many=True,
        help_text="What was seen of each part at the last look.",
    )
    message = serializers.CharField()
    version = serializers.CharField()
    kueue_version = serializers.CharField(
        help_text="Empty until a worker has looked, and with Volcano."
    )
    volcano_version = serializers.CharField(
        help_text="Empty until a worker has looked, and with Kueue."
    )
    last_contact_at = serializers.DateTimeField(allow_null=True)
    looked_at = serializers.DateTimeField(allow_null=True)
    announcement = serializers.CharField(
        help_text="What its teams read; empty for nothing."
    )
    announced_until = serializers.DateTimeField(allow_null=True)
    maintenance_starts_at = serializers.DateTimeField(
        allow_null=True,
        help_text="From when on nothing new starts there; of the last maintenance once it is over.",
    )
    maintenance_ends_at = serializers.DateTimeField(allow_null=True)
    maintenance_drains = serializers.BooleanField(
        help_text="Whether what runs is stopped when it starts; runs start anew after it."
    )
    written_off_at = serializers.DateTimeField(
        allow_null=True, help_text="When it was said to be gone for good."
    )
    cohort = serializers.CharField()
    borrow_percent = serializers.IntegerField()
    storage_class = serializers.CharField()
    jupyterhub_namespace = serializers.CharField()
    shared_services = SharedServiceShownSerializer(many=True)
    egress = EgressRuleShownSerializer(many=True)
    run_variables = serializers.DictField(
        child=serializers.CharField(),
        help_text="What every run there finds in its environment.",
    )
    outside_by_name = serializers.ChoiceField(choices=Cluster.ByName.choices)
    takes_names = serializers.BooleanField(
        help_text="Whether ways out may be DNS names: its network is Cilium."
    )
    dashboards = serializers.BooleanField()
    api_server = serializers.CharField()
    certificate_authority = serializers.CharField(
        help_text="Of the API server, in PEM; empty where nobody told it."
    )
    kubelogin_server_id = serializers.CharField()
    dashboards_url = serializers.CharField()
    prometheus = serializers.CharField(
        help_text="As namespace/service:port; empty where nobody measures GPUs."
    )
    azure_id = serializers.SerializerMethodField()
    on_drift = serializers.ChoiceField(choices=Cluster.OnDrift.choices)
    braked_at = serializers.DateTimeField(allow_null=True)
    brake_reason = serializers.CharField()
    dedicated_to = OwnerField(
        help_text="The team whose own the cluster is, or null; empty for one you may not see."
    )
    writes_per_second = serializers.IntegerField(
        help_text="What all workers together write to it at most."
    )
    most_at_once = serializers.IntegerField(
        help_text="Tenancies that are worked on at the same time at most."
    )
    identity_found = serializers.CharField(
        help_text="Another API server that the kubeconfig leads to now, by its kube-system's uid; empty usually."
    )
    capacity_doubt = serializers.CharField(
        help_text="Why the nodes that it lists are not believed, so that the numbers before stay; empty usually."
    )
    tenancies = serializers.IntegerField(
        source="tenancies_here", help_text="Namespaces of teams that are here."
    )
    tenancies_not_true = serializers.IntegerField(
        help_text="Of these, how many are not as wanted now."
    )
    drifted = serializers.IntegerField(
        help_text="Objects that somebody changed and nobody has dealt with."
    )
    kubeconfig = serializers.SerializerMethodField()
    flavors = FlavorSerializer(many=True)

    def get_git_credentials(self, cluster: Cluster) -> str | None:
        """The file's name, or null."""
        user: User = self.context["request"].user
        return cluster.git_credentials if user.may(Permission.MANAGE_CLUSTERS) else None

    def get_azure_id(self, cluster: Cluster) -> str | None:
        """Its resource id in Azure, for who manages clusters, or null."""
        user: User = self.context["request"].user
        return cluster.azure_id if user.may(Permission.MANAGE_CLUSTERS) else None

    def get_kubeconfig(self, cluster: Cluster) -> str | None:
        """The file's name, or null."""
        user: User = self.context["request"].user
        return cluster.kubeconfig if user.may(Permission.MANAGE_CLUSTERS) else None


class SharedServiceSerializer(StrictSerializer):
    """A service that every team's pods may call: the pods behind it, by their labels."""

    name = Text(max_length=63)
    namespace = Text(max_length=63)
    labels = serializers.DictField(child=Text(max_length=63))
    port = Integer(min_value=1, max_value=65_535)


class EgressRuleSerializer(StrictSerializer):
    """Addresses that every team's pods may reach; private ones only as endpoints, which `inside` says.

    Either ranges (`cidrs`) or, where the cluster takes them, DNS names (`names`).
    """

    name = Text(max_length=63)
    cidrs = serializers.ListField(
        child=Text(max_length=43), min_length=1, max_length=MAX_RANGES, required=False
    )
    names = serializers.ListField(
        child=Text(max_length=LONGEST_HOST),
        min_length=1,
        max_length=MAX_NAMES,
        required=False,
        help_text="Such as huggingface.co or *.huggingface.co.",
    )
    ports = serializers.ListField(
        child=Integer(min_value=1, max_value=65_535), min_length=1, max_length=MAX_PORTS
    )
    inside = Boolean(default=False)


class ClusterChangeSerializer(StrictSerializer):
    """What may be said about a cluster."""

    title = Text(max_length=80)
    region = Text(max_length=40)
    purpose = Choice(choices=Cluster.Purpose.choices)
    queueing = Choice(
        choices=Cluster.Queueing.choices,
        required=False,
        help_text="Whose queues its jobs wait in, Kueue's unless it says otherwise; it stays as it was registered.",
    )
    kubeconfig = Text(
        max_length=200,
        required=False,
        allow_blank=True,
        help_text="The name of a file in the portal's kubeconfig folder; empty for the portal's own cluster.",
    )
    context = Text(max_length=100, required=False, allow_blank=True)  # type: ignore[assignment]
    cohort = Text(max_length=60, required=False)
    borrow_percent = Integer(min_value=0, max_value=100, required=False)
    storage_class = Text(max_length=60, required=False, allow_blank=True)
    writes_per_second = Integer(min_value=1, max_value=1000, required=False)
    most_at_once = Integer(min_value=1, max_value=64, required=False)
    enabled = Boolean(required=False)
    announcement = Text(
        max_length=300,
        required=False,
        allow_blank=True,
        help_text="What its teams read.",
    )
    announced_until = Moment(
        required=False, allow_null=True, help_text="Null: until it is taken away."
    )
    maintenance_starts_at = Moment(
        required=False,
        allow_null=True,
        help_text="From when on nothing new starts there. Null with `maintenance_ends_at`: a maintenance that was "
        "planned does not take place, one that is on ends with this minute.",
    )
    maintenance_ends_at = Moment(
        required=False,
        allow_null=True,
        help_text="Within 14 days of its start. What waits starts from then on.",
    )
    maintenance_drains = Boolean(
        required=False,
        help_text="Stop what runs when it starts: runs start anew after it, notebooks do not. Not with Volcano.",
    )
    delivery = Choice(choices=Cluster.Delivery.choices, required=False)
    git_url = Text(
        max_length=300,
        required=False,
        allow_blank=True,
        help_text="An https or ssh address without credentials.",
    )
    git_branch = Text(max_length=100, required=False)
    git_way = Choice(choices=Cluster.GitWay.choices, required=False)
    git_credentials = Text(
        max_length=200,
        required=False,
        allow_blank=True,
        help_text="The name of a file in the portal's folder for Git credentials.",
    )
    jupyterhub_namespace = Text(max_length=63, required=False, allow_blank=True)
    shared_services = SharedServiceSerializer(many=True, required=False)
    egress = EgressRuleSerializer(many=True, required=False)
    run_variables = serializers.DictField(
        child=Text(max_length=1_000, allow_blank=True),
        required=False,
        help_text="What every run there finds in its environment, unless it says otherwise; no secrets.",
    )
    outside_by_name = Choice(
        choices=Cluster.ByName.choices,
        required=False,
        help_text="Whether ways out may be DNS names.",
    )
    dashboards = Boolean(required=False)
    api_server = Text(
        max_length=300,
        required=False,
        allow_blank=True,
        help_text="The https address that kubectl of members uses.",
    )
    certificate_authority = Text(
        max_length=MAX_LENGTH,
        required=False,
        allow_blank=True,
        help_text="Of the API server, in PEM; empty: that of the kubeconfig file, if it has one.",
    )
    kubelogin_server_id = Text(
        max_length=36,
        required=False,
        help_text="The object id of the application that kubelogin signs in to.",
    )
    dashboards_url = Text(
        max_length=300,
        required=False,
        allow_blank=True,
        help_text="Grafana's https address.",
    )
    prometheus = Text(
        max_length=140,
        required=False,
        allow_blank=True,
        help_text="The Service of its Prometheus, as namespace/service:port.",
    )
    azure_id = Text(
        max_length=300,
        required=False,
        allow_blank=True,
        help_text="Its resource id, as `az aks show --query id` prints it; empty for one that is not in Azure.",
    )
    on_drift = Choice(choices=Cluster.OnDrift.choices, required=False)
    dedicated_to = Text(
        max_length=40,
        required=False,
        allow_blank=True,
        help_text="A team's slug; empty for all teams.",
    )


class NewClusterSerializer(ClusterChangeSerializer):
    """A cluster to add."""

    name = Text(max_length=40)


class AcceptIdentitySerializer(StrictSerializer):
    """The API server that was seen behind the kubeconfig."""

    identity_found = Text(max_length=64)


class WriteOffSerializer(StrictSerializer):
    """That a cluster is gone for good."""

    name = Text(max_length=40, help_text="The cluster's name, once more.")


class TaintSerializer(StrictSerializer):
    """A node's taint."""

    key = Text(max_length=317)
    value = Text(max_length=63, required=False, allow_blank=True)
    effect = Choice(choices=EFFECTS)


class FlavorChangeSerializer(StrictSerializer):
    """What may be said about a kind of GPU."""

    product = Text(max_length=40)
    memory_gb = Integer(min_value=1, max_value=10_000)
    gpus_per_node = Integer(min_value=1, max_value=64)
    gpus_total = Integer(
        min_value=0,
        max_value=100_000,
        required=False,
        help_text="How many there are: for a cluster that the portal does not observe, and for no other.",
    )
    min_nodes = Integer(
        min_value=0,
        max_value=1000,
        required=False,
        help_text="Fewer nodes than these an autoscaler never leaves.",
    )
    max_nodes = Integer(
        min_value=0,
        max_value=1000,
        required=False,
        help_text="An autoscaler adds nodes up to these; 0 for none.",
    )
    growing_minutes = Integer(
        min_value=0,
        max_value=240,
        required=False,
        help_text="How long a new node usually takes until it is ready.",
    )
    interruption_hours = Integer(
        min_value=0,
        max_value=8760,
        required=False,
        help_text="Of spot nodes: hours until one is taken back, on average; 0 to say nothing.",
    )
    node_pool = Text(
        max_length=12,
        required=False,
        allow_blank=True,
        help_text="Of a cluster in Azure: its node pool, where its labels do not tell which.",
    )
    price_per_gpu_hour = Money(decimal_places=4)
    follows_list = Boolean(
        required=False,
        help_text="Of a cluster in Azure: have the price go with Azure's list, once that is read.",
    )
    capacity_type = Choice(choices=Flavor.Capacity.choices, required=False)
    cpu_per_gpu = Integer(min_value=1, max_value=1000, required=False)
    memory_gib_per_gpu = Integer(min_value=1, max_value=10_000, required=False)
    is_offered = Boolean(required=False)
    node_labels = serializers.DictField(
        child=Text(max_length=63, allow_blank=True), required=False
    )
    node_taints = TaintSerializer(many=True, required=False)
    resource = Text(
        max_length=60, required=False, help_text="nvidia.com/gpu, or a MIG profile."
    )
    dedicated_to = Text(
        max_length=40,
        required=False,
        allow_blank=True,
        help_text="A team's slug; empty for all teams.",
    )


class ChangedFlavorSerializer(FlavorChangeSerializer):
    """What may be changed about a kind of GPU."""

    price_is_meant = Boolean(
        required=False,
        help_text="Take a price that is more than ten times, or less than a tenth of, that of now.",
    )


class NewFlavorSerializer(FlavorChangeSerializer):
    """A kind of GPU to add."""

    cluster = Text(max_length=40)
    name = Text(max_length=40)


class FlavorQuery(PageQuery):
    """Which flavors to list."""

    cluster = Text(required=False, max_length=40)


class ClusterEndpoint(mixins.ListModelMixin, mixins.RetrieveModelMixin, Endpoint):
    """The clusters of the fleet."""

    queryset = (
        Cluster.objects.counted()
        .select_related("dedicated_to")
        .prefetch_related("flavors__cluster", "flavors__dedicated_to")
    )
    serializer_class = ClusterSerializer
    lookup_field = "name"
    lookup_value_converter = "slug"
    ordering = "name"
    asks = {"list": PageQuery}
    keyed = frozenset({"create", "accept_identity", "accept_capacity", "write_off"})
    bodyless = frozenset({"accept_capacity", "destroy"})

    @extend_schema(request=NewClusterSerializer, responses={201: ClusterSerializer})
    def create(self, request: Request) -> Response:
        """Add a cluster (platform leads)."""
        values = self.body(NewClusterSerializer)
        return answer_once(request, lambda: self._add(values))

    @extend_schema(request=ClusterChangeSerializer, responses=ClusterSerializer)
    def partial_update(self, request: Request, name: str) -> Response:
        """Change a cluster (platform leads); its name stays."""
        values = self.body(ClusterChangeSerializer, partial=True)
        cluster_actions.change_cluster(
            self.get_object().pk, values=values, by=self.caller
        )
        return Response(self.shown(self.get_object(), ClusterSerializer))

    @extend_schema(
        request=None, responses={204: OpenApiResponse(description="It is removed.")}
    )
    def destroy(self, request: Request, name: str) -> Response:
        """Remove a cluster on which nobody ever was, with its kinds of GPU (platform leads)."""
        remove_cluster(self.get_object().pk, by=self.caller)
        return Response(status=204)

    @extend_schema(request=AcceptIdentitySerializer, responses=ClusterSerializer)
    @action(detail=True, methods=["post"], url_path="accept-identity")
    def accept_identity(self, request: Request, name: str) -> Response:
        """Have the cluster be the API server that its kubeconfig leads to now (platform leads)."""
        found = self.body(AcceptIdentitySerializer)["identity_found"]
        return self._accept(
            lambda pk: cluster_actions.accept_identity(pk, found=found, by=self.caller)
        )

    @extend_schema(request=None, responses=ClusterSerializer)
    @action(detail=True, methods=["post"], url_path="accept-capacity")
    def accept_capacity(self, request: Request, name: str) -> Response:
        """Believe at the next look how many nodes the cluster lists, however few (platform leads)."""
        return self._accept(
            lambda pk: cluster_actions.accept_capacity(pk, by=self.caller)
        )

    @extend_schema(request=WriteOffSerializer, responses=ClusterSerializer)
    @action(detail=True, methods=["post"], url_path="write-off")
    def write_off(self, request: Request, name: str) -> Response:
        """Say that a cluster is gone for good: what teams have there ends (platform leads)."""
        typed = self.body(WriteOffSerializer)["name"]
        return self._accept(
            lambda pk: write_off(pk, name=typed, by=self.caller, now=timezone.now())
        )

    def _accept(self, act: Callable[[int], Cluster]) -> Response:
        found = self.get_object().pk

        def change() -> Answer:
            act(found)
            return Answer(self.shown(self.get_object(), ClusterSerializer))

        return answer_once(self.request, change)

    def _add(self, values: dict[str, Any]) -> Answer:
        cluster = cluster_actions.add_cluster(
            name=values.pop("name"), values=values, by=self.caller
        )
        shown = self.get_queryset().get(pk=cluster.pk)
        return Answer(
            self.shown(shown, ClusterSerializer),
            201,
            f"/api/v1/clusters/{cluster.name}/",
        )


class FlavorEndpoint(mixins.ListModelMixin, mixins.RetrieveModelMixin, Endpoint):
    """The kinds of GPU there are."""

    queryset = Flavor.objects.select_related("cluster", "dedicated_to")
    serializer_class = FlavorSerializer
    lookup_value_converter = "int"
    asks = {"list": FlavorQuery}
    keyed = frozenset({"create"})
    bodyless = frozenset({"destroy"})

    def filter_queryset(self, queryset: Any) -> Any:
        """Those of one cluster, if one is named."""
        cluster = self.asked.get("cluster")
        return (
            queryset.filter(cluster__name=cluster) if cluster is not None else queryset
        )

    @extend_schema(request=NewFlavorSerializer, responses={201: FlavorSerializer})
    def create(self, request: Request) -> Response:
        """Add a kind of GPU to a cluster (platform leads)."""
        values = self.body(NewFlavorSerializer)
        return answer_once(request, lambda: self._add(values))

    @extend_schema(request=ChangedFlavorSerializer, responses=FlavorSerializer)
    def partial_update(self, request: Request, pk: int) -> Response:
        """Change a kind of GPU (platform leads); its name and cluster stay."""
        values = self.body(ChangedFlavorSerializer, partial=True)
        is_meant = values.pop("price_is_meant", False)
        flavor = flavor_actions.change_flavor(
            self.get_object().pk,
            values=values,
            by=self.caller,
            price_is_meant=is_meant,
        )
        return Response(self.shown(flavor, FlavorSerializer))

    @extend_schema(
        request=None, responses={204: OpenApiResponse(description="It is removed.")}
    )
    def destroy(self, request: Request, pk: int) -> Response:
        """Remove a kind of GPU that was never asked for (platform leads)."""
        remove_flavor(self.get_object().pk, by=self.caller)
        return Response(status=204)

    def _add(self, values: dict[str, Any]) -> Answer:
        cluster = get_object_or_404(Cluster, name=values.pop("cluster"))
        flavor = flavor_actions.add_flavor(
            cluster, name=values.pop("name"), values=values, by=self.caller
        )
        return Answer(
            self.shown(flavor, FlavorSerializer), 201, f"/api/v1/flavors/{flavor.pk}/"
        )
