"""What exists: clusters, and the kinds of GPU capacity they hold."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import models
from django.db.models import Count, F, FilteredRelation, Q, Value
from django.db.models.functions import Coalesce, Greatest, Least, Lower

from accounts.models import Team
from fleet import growth
from fleet.maintenance import Maintenance
from fleet.names import flavor_key, product_words, profile_of
from fleet.versions.comparing import driver_words
from ui.amounts import dated
from web.rows import Row

# The application that Azure Kubernetes Service signs people in to, in every tenant.
AKS_SERVER = "6dae42f8-4368-4678-94ff-3960e28e3630"
SLUG = r"^[a-z]([a-z0-9-]*[a-z0-9])?$"


class Environment(models.TextChoices):
    """What a namespace is for; production is never decided by the policy alone."""

    DEV = "dev", "Development"
    TEST = "test", "Test"
    PRODUCTION = "production", "Production"


@dataclass(frozen=True, kw_only=True, slots=True)
class SeenPart:
    """What was seen of a part of a cluster: `state` is good, bad or waiting (unknown), since when, if that is known."""

    part: str
    state: str
    words: str
    since: datetime | None = None


def _for(team: Team | None, field: str) -> Q:
    """What is for everybody, or for this team; None is a team that is not there yet."""
    everybody = Q(**{f"{field}__isnull": True})
    return everybody | Q(**{field: team}) if team is not None and team.pk else everybody


class ClusterQuerySet(models.QuerySet["Cluster"]):
    """Ways to look at clusters."""

    def open_to(self, team: Team | None) -> "ClusterQuerySet":
        """Those that take this team now; None is a team that is not there yet."""
        return self.not_of_others(team).filter(enabled=True)

    def not_of_others(self, team: Team | None) -> "ClusterQuerySet":
        """Those for everybody, and this team's own; None is a team that is not there yet."""
        return self.filter(_for(team, "dedicated_to"))

    def not_written_off(self) -> "ClusterQuerySet":
        """Those that may answer one day; of the others nothing is asked any more."""
        return self.filter(written_off_at=None)

    def looked_after(self) -> "ClusterQuerySet":
        """Those in use, and those out of use that have tenancies still: who is there stays, and is looked after."""
        has_some = Cluster.objects.alias(
            there=FilteredRelation("tenancies", condition=~Q(tenancies__stage="gone"))
        ).filter(there__isnull=False)
        return self.filter(Q(enabled=True) | Q(pk__in=has_some.values("pk")))

    def counted(self) -> "ClusterQuerySet":
        """Each with how many tenancies it has, of how many teams, not as wanted, and how many objects drifted."""
        here = ~Q(tenancies__stage="gone") & Q(tenancies__isnull=False)
        settled = Q(
            tenancies__is_true=True,
            tenancies__observed_generation=F("tenancies__generation"),
        )
        drifted = Q(tenancies__drifts__state="open")
        return self.annotate(
            tenancies_here=Count("tenancies", filter=here, distinct=True),
            teams_here=Count("tenancies__team", filter=here, distinct=True),
            tenancies_not_true=Count(
                "tenancies", filter=here & ~settled, distinct=True
            ),
            drifted=Count("tenancies__drifts", filter=drifted, distinct=True),
        )


class Cluster(Row):
    """A Kubernetes cluster of the fleet; credentials stay in a kubeconfig file that is only named here."""

    class Purpose(models.TextChoices):
        TRAINING = "training", "Training and fine-tuning"
        INFERENCE = "inference", "Production inference"
        DEVELOPMENT = "development", "Development and notebooks"

    class Delivery(models.TextChoices):
        APPLY = "apply", "Server-side apply"
        GIT = "git", "A Git repository that Flux or Argo CD follows"

    class Queueing(models.TextChoices):
        KUEUE = "kueue", "Kueue"
        VOLCANO = "volcano", "Volcano"

    class OnDrift(models.TextChoices):
        REPAIR = "repair", "Put it right at once"
        ASK = "ask", "Ask a platform lead"

    class ByName(models.TextChoices):
        AUTO = "auto", "If it has Cilium"
        CILIUM = "cilium", "Yes"
        NONE = "none", "No"

    class GitWay(models.TextChoices):
        DIRECT = "direct", "Push to the branch"
        PULL_REQUEST = "pull-request", "Open a pull request"

    name = models.SlugField(max_length=40, unique=True)
    title = models.CharField(max_length=80)
    region = models.CharField(max_length=40)
    purpose = models.CharField(max_length=20, choices=Purpose.choices)
    delivery = models.CharField(
        max_length=10, choices=Delivery.choices, default=Delivery.APPLY
    )
    # Whose queues its jobs wait in: chosen when it is registered, and fixed.
    queueing = models.CharField(
        max_length=10,
        choices=Queueing.choices,
        default=Queueing.KUEUE,
        db_default="kueue",
    )
    kubeconfig = models.CharField(max_length=200, blank=True)
    context = models.CharField(max_length=100, blank=True)
    cohort = models.CharField(max_length=60, default="quartermaster")
    borrow_percent = models.PositiveSmallIntegerField(default=0)
    storage_class = models.CharField(max_length=60, blank=True)
    enabled = models.BooleanField(default=True)
    dedicated_to = models.ForeignKey(
        Team, models.PROTECT, null=True, blank=True, related_name="own_clusters"
    )
    jupyterhub_namespace = models.CharField(
        max_length=63, blank=True, default="", db_default=""
    )
    # [{"name": …, "namespace": …, "labels": {…}, "port": …}]: what every team's pods may call.
    shared_services = models.JSONField(default=list, blank=True, db_default=[])
    # [{"name": …, "cidrs": […] or "names": […], "ports": […], "inside": …}]: where every team's pods may go outside.
    egress = models.JSONField(default=list, blank=True, db_default=[])
    # Whether those may be DNS names, and whether the last look saw what enforces them; None before it.
    outside_by_name = models.CharField(
        max_length=10, choices=ByName.choices, default=ByName.AUTO, db_default="auto"
    )
    has_cilium = models.BooleanField(null=True)
    # {"NCCL_SOCKET_IFNAME": "eth0"}: what every run there finds in its environment, unless it says otherwise.
    run_variables = models.JSONField(default=dict, blank=True, db_default={})
    dashboards = models.BooleanField(default=True, db_default=True)
    # What people of the teams need to use it: where kubectl goes, what it signs in to, and where they look.
    api_server = models.CharField(max_length=300, blank=True, default="", db_default="")
    # In PEM; empty: that of the kubeconfig file, where it has one.
    certificate_authority = models.TextField(blank=True, default="", db_default="")
    kubelogin_server_id = models.CharField(
        max_length=36, blank=True, default=AKS_SERVER, db_default=AKS_SERVER
    )
    dashboards_url = models.CharField(
        max_length=300, blank=True, default="", db_default=""
    )
    # As namespace/service:port, inside the cluster: how busy GPUs are. Empty: nobody measures it.
    prometheus = models.CharField(max_length=140, blank=True, default="", db_default="")

    # Its resource id in Azure, as `az aks show --query id` prints it: quota, pools and reservations are read by it.
    azure_id = models.CharField(max_length=300, blank=True, default="", db_default="")
    # Why its pools could not be read in Azure the last time; empty when they could.
    azure_message = models.CharField(
        max_length=600, blank=True, default="", db_default=""
    )

    on_drift = models.CharField(
        max_length=10,
        choices=OnDrift.choices,
        default=OnDrift.REPAIR,
        db_default="repair",
    )
    writes_per_second = models.PositiveSmallIntegerField(default=20, db_default=20)
    most_at_once = models.PositiveSmallIntegerField(default=4, db_default=4)
    # Set when so much would change at once that a person must look first; nothing is repaired while it is.
    braked_at = models.DateTimeField(null=True)
    brake_reason = models.CharField(
        max_length=300, blank=True, default="", db_default=""
    )

    git_url = models.CharField(max_length=300, blank=True, default="", db_default="")
    git_branch = models.CharField(max_length=100, default="main", db_default="main")
    git_way = models.CharField(
        max_length=12,
        choices=GitWay.choices,
        default=GitWay.DIRECT,
        db_default="direct",
    )
    git_credentials = models.CharField(
        max_length=200, blank=True, default="", db_default=""
    )

    reachable = models.BooleanField(null=True)
    message = models.CharField(max_length=600, blank=True)
    # Of the failure that `message` tells of, as connectors name kinds of failure; empty for none, or an unknown one.
    failure_code = models.CharField(
        max_length=40, blank=True, default="", db_default=""
    )
    version = models.CharField(max_length=40, blank=True)
    kueue_version = models.CharField(
        max_length=40, blank=True, default="", db_default=""
    )
    volcano_version = models.CharField(
        max_length=40, blank=True, default="", db_default=""
    )
    last_contact_at = models.DateTimeField(null=True)
    # Since when it does not answer or refuses us, and when leads were told; neither while all is well.
    away_since = models.DateTimeField(null=True)
    away_told_at = models.DateTimeField(null=True)
    looked_at = models.DateTimeField(null=True)
    # When a lead said that it is gone for good, with all that stood there.
    written_off_at = models.DateTimeField(null=True)

    # What its teams read, such as when it is maintained, and until when; empty for nothing.
    announcement = models.CharField(
        max_length=300, blank=True, default="", db_default=""
    )
    announced_until = models.DateTimeField(null=True, blank=True)
    # The next maintenance, the one that is on, or the last one.
    maintenance_starts_at = models.DateTimeField(null=True, blank=True)
    maintenance_ends_at = models.DateTimeField(null=True, blank=True)
    maintenance_drains = models.BooleanField(default=False, db_default=False)

    # The uid of the namespace kube-system: which API server this is. `identity_found` is that of another one to which
    # the kubeconfig leads now, until a lead accepts it or mends the file.
    identity = models.CharField(max_length=64, blank=True, default="", db_default="")
    identity_found = models.CharField(
        max_length=64, blank=True, default="", db_default=""
    )
    # How many nodes were listed that no autoscaler may take away, and why a shorter list is not believed yet.
    nodes_seen = models.PositiveIntegerField(default=0, db_default=0)
    capacity_doubt = models.CharField(
        max_length=300, blank=True, default="", db_default=""
    )
    doubted_looks = models.PositiveSmallIntegerField(default=0, db_default=0)
    # [{"part": …, "state": "good" | "bad" | "waiting", "words": …, "since": …}]: what was seen of each part at the last
    # look, and since when it is so.
    parts = models.JSONField(default=list, blank=True, db_default=[])
    # The names of Kueue's priorities at the last look; null where the portal may not list them, and with Volcano.
    queue_priorities = models.JSONField(null=True)

    objects = ClusterQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["identity"],
                condition=~Q(identity=""),
                name="an_api_server_is_registered_once",
            ),
            models.UniqueConstraint(
                Lower("azure_id"),
                condition=~Q(azure_id=""),
                name="an_aks_cluster_is_registered_once",
            ),
            models.CheckConstraint(
                condition=Q(written_off_at=None) | Q(enabled=False),
                name="what_is_written_off_is_out_of_use",
            ),
            models.CheckConstraint(
                condition=Q(
                    maintenance_starts_at=None,
                    maintenance_ends_at=None,
                    maintenance_drains=False,
                )
                | Q(
                    maintenance_starts_at__isnull=False,
                    maintenance_ends_at__gt=F("maintenance_starts_at"),
                ),
                name="a_maintenance_ends_after_it_starts",
            ),
            models.CheckConstraint(
                condition=Q(capacity_doubt="", doubted_looks=0)
                | (~Q(capacity_doubt="") & Q(doubted_looks__gte=1)),
                name="a_doubted_list_of_nodes_has_a_reason",
            ),
            models.CheckConstraint(
                condition=Q(queueing="kueue") | Q(queueing="volcano", delivery="apply"),
                name="a_cluster_with_volcano_is_written_to_directly",
            ),
            models.CheckConstraint(
                condition=Q(queueing="kueue") | Q(borrow_percent=0),
                name="nothing_is_borrowed_with_volcano",
            ),
            models.CheckConstraint(
                condition=Q(name__regex=SLUG), name="a_cluster_name_is_a_dns_label"
            ),
            models.CheckConstraint(
                condition=Q(borrow_percent__lte=100),
                name="borrowing_is_at_most_as_much_again",
            ),
            models.CheckConstraint(
                condition=Q(braked_at=None, brake_reason="")
                | (Q(braked_at__isnull=False) & ~Q(brake_reason="")),
                name="repairs_stop_for_a_reason",
            ),
            models.CheckConstraint(
                condition=Q(writes_per_second__gte=1, most_at_once__gte=1),
                name="a_cluster_may_be_written_to",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def may_have_policies_by_name(self) -> bool:
        """Whether CiliumNetworkPolicies can stand there, whether or not new ones are wanted."""
        return self.has_cilium is True or self.outside_by_name == self.ByName.CILIUM

    @property
    def takes_names(self) -> bool:
        """Whether its ways out may be DNS names."""
        return (
            self.may_have_policies_by_name and self.outside_by_name != self.ByName.NONE
        )

    @property
    def is_written_to(self) -> bool:
        """Whether the portal changes the cluster itself; one that follows Git it changes by commits alone."""
        return self.delivery == self.Delivery.APPLY

    @property
    def has_volcano(self) -> bool:
        """Whether its queues are Volcano's."""
        return self.queueing == self.Queueing.VOLCANO

    @property
    def queue_version(self) -> str:
        """The release of what keeps its queues; empty until a worker has looked."""
        return self.volcano_version if self.has_volcano else self.kueue_version

    @property
    def why_closed(self) -> str:
        """That it takes no new requests, in a clause; empty while it does."""
        return "" if self.enabled else f"{self.title} takes no new requests now"

    @property
    def is_observed(self) -> bool:
        """Whether the portal can look at the cluster itself, not at its repository alone."""
        return self.is_written_to or bool(self.kubeconfig)

    @property
    def health(self) -> str:
        """`good`, `bad` (it or a part of it does not work) or `waiting` (never looked at), for the state badge."""
        if self.reachable and self.broken_parts:
            return "bad"
        return {True: "good", False: "bad", None: "waiting"}[self.reachable]

    @property
    def seen_parts(self) -> list[SeenPart]:
        """What was seen of each part at the last look."""
        return [
            SeenPart(
                part=each["part"],
                state=each["state"],
                words=each["words"],
                since=datetime.fromisoformat(each["since"])
                if "since" in each
                else None,
            )
            for each in self.parts
        ]

    @property
    def broken_parts(self) -> list[SeenPart]:
        """The parts that did not work at the last look: API server, Kueue or Volcano, its webhooks, nodes."""
        return [each for each in self.seen_parts if each.state == "bad"]

    @property
    def queues_down_since(self) -> datetime | None:
        """Since when nothing that waits in a queue starts, as none of Kueue's or Volcano's controllers is there."""
        keeper = self.get_queueing_display()
        return next(
            (each.since for each in self.broken_parts if each.part == keeper),
            None,
        )

    @property
    def labels_jobs(self) -> bool:
        """Whether each new job without a queue is put into that of its namespace, as far as was seen."""
        lacks = any(
            each.part == "Kueue's settings" and each.state != "good"
            for each in self.seen_parts
        )
        return not self.has_volcano and not lacks

    def announces(self, now: datetime) -> str:
        """What its teams read now, a maintenance first; empty for nothing."""
        until, maintenance = self.announced_until, self.maintenance(now)
        said = [maintenance.words(now)] if maintenance is not None else []
        if self.announcement and (until is None or until > now):
            said.append(self.announcement)
        return " ".join(said)

    def maintenance(self, now: datetime) -> Maintenance | None:
        """The maintenance that is on or planned; None where there is none, it is over, or the cluster is gone."""
        found = self.last_maintenance
        if found is None or now >= found.ends or self.written_off_at is not None:
            return None
        return found

    def maintenance_now(self, now: datetime) -> Maintenance | None:
        """The maintenance that is on; None while none is."""
        found = self.maintenance(now)
        return found if found is not None and found.is_on(now) else None

    def stop_policy(self, now: datetime) -> str:
        """What its queues do now for a maintenance, as Kueue's `stopPolicy` names it."""
        found = self.maintenance_now(now)
        if found is None:
            return "None"
        return "HoldAndDrain" if found.drains else "Hold"

    @property
    def last_maintenance(self) -> Maintenance | None:
        """The maintenance that is planned, on, or over and the last that was."""
        starts, ends = self.maintenance_starts_at, self.maintenance_ends_at
        if starts is None or ends is None:
            return None
        return Maintenance(starts=starts, ends=ends, drains=self.maintenance_drains)

    @property
    def is_away(self) -> bool:
        """Whether it did not answer at the last look; of one that was never looked at nobody knows."""
        return self.reachable is False

    @property
    def may_be_gone(self) -> bool:
        """Whether it is out of use and does not answer, or nobody can ask it: it is gone for good, or comes back."""
        is_silent = self.is_away or not self.is_observed
        return not self.enabled and self.written_off_at is None and is_silent

    @property
    def has_answered(self) -> bool:
        """Whether its API server answered at the last look, whatever came of the rest of it."""
        return any(
            each.part == "API server" and each.state == "good"
            for each in self.seen_parts
        )


def gpus_obtainable(*, ready: int, cordoned: int) -> Greatest:
    """`Flavor.gpus_obtainable` as the database computes it: with the maximum that a lead may be changing meanwhile."""
    nodes = Least(F("max_nodes"), Coalesce(F("azure_nodes"), F("max_nodes")))
    return Greatest(Value(ready), nodes * F("gpus_per_node") - Value(cordoned))


def announcing(now: datetime) -> Q:
    """Clusters whose teams read something now, as a condition: the same as `Cluster.announces`."""
    in_force = Q(announced_until=None) | Q(announced_until__gt=now)
    maintained = Q(maintenance_ends_at__gt=now, written_off_at=None)
    return (~Q(announcement="") & in_force) | maintained


def in_maintenance(now: datetime, *, since: datetime | None = None) -> Q:
    """Clusters whose maintenance is on now, or was at a moment since one, as a condition."""
    return Q(maintenance_starts_at__lte=now, maintenance_ends_at__gt=since or now)


class FlavorQuerySet(models.QuerySet["Flavor"]):
    """Ways to look at flavors."""

    def offered(self) -> "FlavorQuerySet":
        """What may be asked for now: offered, on a cluster that is in use."""
        return self.filter(is_offered=True, cluster__enabled=True)

    def of_key(self, key: str) -> "FlavorQuerySet":
        """The one that forms, links and the API name so: "training-eastus/a100"; none for any other word."""
        cluster, _, name = key.partition("/")
        return self.filter(cluster__name=cluster, name=name)

    def kinds(self) -> dict[str, str]:
        """What people call these kinds of GPU, by their names: {"t4-16gb": "T4"}; one query."""
        return {row.name: row.kind for row in self}

    def offered_to(self, team: Team | None) -> "FlavorQuerySet":
        """What this team may ask for now; None is a team that is not there yet."""
        return self.offered().filter(
            _for(team, "dedicated_to"), _for(team, "cluster__dedicated_to")
        )


class Flavor(Row):
    """A kind of GPU capacity on a cluster: Kueue's ResourceFlavor with a product, a size and a price.

    Volcano counts resources and knows no flavors: on a cluster with it no two have the same resource.

    `allocated` is moved only by conditional update, so that two grants can never take the same GPU.
    """

    class Capacity(models.TextChoices):
        ON_DEMAND = "on-demand", "On demand"
        SPOT = "spot", "Spot"
        RESERVED = "reserved", "Reserved"

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="flavors")
    name = models.SlugField(max_length=40)
    product = models.CharField(max_length=40)
    memory_gb = models.PositiveIntegerField()
    gpus_per_node = models.PositiveSmallIntegerField()
    capacity_type = models.CharField(
        max_length=12, choices=Capacity.choices, default=Capacity.ON_DEMAND
    )
    price_per_gpu_hour = models.DecimalField(max_digits=9, decimal_places=4)
    # Whether the price goes with Azure's list, whether it is that of the list by now, and of which day it is: on which
    # it was read in the list, or else when people set it; None is not known.
    follows_list = models.BooleanField(default=False, db_default=False)
    is_list_price = models.BooleanField(default=False, db_default=False)
    priced_at = models.DateTimeField(null=True)
    node_labels = models.JSONField(default=dict)
    node_taints = models.JSONField(default=list)
    cpu_per_gpu = models.PositiveSmallIntegerField(default=8)
    memory_gib_per_gpu = models.PositiveSmallIntegerField(default=64)
    # What can be had: what is ready, or what the pool can grow to without its cordoned nodes. It is written
    # with the next two, see `gpus_obtainable`; where nobody counts, people tell it.
    gpus_total = models.PositiveIntegerField(default=0)
    gpus_ready = models.PositiveIntegerField(default=0, db_default=0)
    gpus_cordoned = models.PositiveIntegerField(default=0, db_default=0)
    gpus_seen_at = models.DateTimeField(null=True)
    # What its nodes run, as `fleet.versions.reading.Versions`, and when one was seen last: of a pool without nodes what
    # the last ones ran stays.
    versions = models.JSONField(default=dict, blank=True, db_default={})
    versions_at = models.DateTimeField(null=True)
    # Of an autoscaler: how few and how many nodes it keeps, and how long a new one takes. 0 nodes at most is none.
    min_nodes = models.PositiveSmallIntegerField(default=0, db_default=0)
    max_nodes = models.PositiveSmallIntegerField(default=0, db_default=0)
    growing_minutes = models.PositiveSmallIntegerField(default=0, db_default=0)
    # Of spot nodes: hours until one is taken back, on average. 0 is nobody said so.
    interruption_hours = models.PositiveSmallIntegerField(default=0, db_default=0)
    # In Azure: its node pool where its labels do not tell which, to how many nodes quota and reservations let the pool
    # grow (None is not known), and which of them it is that lets it grow no further.
    node_pool = models.CharField(max_length=12, blank=True, default="", db_default="")
    azure_nodes = models.PositiveSmallIntegerField(null=True)
    azure_limit = models.CharField(
        max_length=120, blank=True, default="", db_default=""
    )
    allocated = models.IntegerField(default=0)
    is_offered = models.BooleanField(default=True)
    # As nodes count them: MIG profiles of mixed nodes have names of their own, such as nvidia.com/mig-1g.10gb.
    resource = models.CharField(
        max_length=60, default="nvidia.com/gpu", db_default="nvidia.com/gpu"
    )
    dedicated_to = models.ForeignKey(
        Team, models.PROTECT, null=True, blank=True, related_name="own_flavors"
    )

    objects = FlavorQuerySet.as_manager()

    class Meta:
        ordering = ["cluster__name", "price_per_gpu_hour", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "name"], name="a_flavor_is_on_a_cluster_once"
            ),
            models.CheckConstraint(
                condition=Q(name__regex=SLUG), name="a_flavor_name_is_a_dns_label"
            ),
            models.CheckConstraint(
                condition=Q(allocated__gte=0), name="allocated_gpus_are_not_negative"
            ),
            models.CheckConstraint(
                condition=Q(price_per_gpu_hour__gt=Decimal(0)),
                name="a_gpu_hour_has_a_price",
            ),
            models.CheckConstraint(
                condition=Q(is_list_price=False)
                | Q(follows_list=True, priced_at__isnull=False),
                name="a_list_price_is_followed_and_of_a_day",
            ),
            models.CheckConstraint(
                condition=Q(gpus_per_node__gte=1), name="a_node_has_a_gpu"
            ),
            models.CheckConstraint(
                condition=Q(min_nodes__lte=F("max_nodes")),
                name="a_pool_is_not_smaller_than_its_minimum",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.words} · {self.cluster.title}"

    @property
    def is_spot(self) -> bool:
        """Whether its nodes are cheap because they are taken back."""
        return self.capacity_type == self.Capacity.SPOT

    @property
    def device(self) -> str:
        """What one of its GPUs is, however it is bought: "A100", or "A100 1g.10gb slice" where each is cut."""
        return product_words(self.product, self.resource)

    @property
    def kind(self) -> str:
        """What people call it behind a number: "A100", or "A100 (spot)" beside that."""
        return f"{self.device}{' (spot)' if self.is_spot else ''}"

    @property
    def words(self) -> str:
        """What people call it on its cluster: "A100 80 GB", or "A100 80 GB (spot)"; a slice's name says its memory."""
        memory = "" if profile_of(self.resource) else f" {self.memory_gb} GB"
        return f"{self.device}{memory}{' (spot)' if self.is_spot else ''}"

    @property
    def seen_versions(self) -> Mapping[str, Any] | None:
        """What its nodes run; None before one was seen."""
        return self.versions if self.versions_at is not None else None

    @property
    def driver_words(self) -> str:
        """What its nodes can run, in a clause: "driver 570.86.15, CUDA up to 12.8"; empty where no node tells it."""
        return driver_words(self.versions)

    @property
    def key(self) -> str:
        """As forms, links and the API name it: "training-eastus/a100"."""
        return flavor_key(self.cluster.name, self.name)

    @property
    def why_closed(self) -> str:
        """Why nobody gets more of it, or keeps it longer, in a clause; empty where they may. Asks for its cluster."""
        if self.cluster.why_closed or self.is_offered:
            return self.cluster.why_closed
        return f"{self.kind} on {self.cluster.title} is not offered now"

    @property
    def price_words(self) -> str:
        """Which price of which day it is: "Azure's list price of 24 Nov 2026"."""
        if self.is_list_price and self.priced_at:
            return f"Azure's list price of {dated(self.priced_at)}"
        on = f" on {dated(self.priced_at)}" if self.priced_at else ""
        return f"set by the platform team{on}"

    @property
    def can_grow_to(self) -> int | None:
        """GPUs of the pool when its autoscaler has added all that it may; None for a pool that does not grow."""
        return self.max_nodes * self.gpus_per_node or None

    @property
    def gpus_obtainable(self) -> int:
        """GPUs that can be had now or once the pool has grown: what `gpus_total` is where nodes are counted."""
        return self.obtainable_with(self.azure_nodes)

    def obtainable_with(self, azure_nodes: int | None) -> int:
        """The same if Azure let the pool grow to so many nodes; None for not known."""
        nodes = (
            self.max_nodes if azure_nodes is None else min(self.max_nodes, azure_nodes)
        )
        return max(self.gpus_ready, nodes * self.gpus_per_node - self.gpus_cordoned)

    @property
    def is_kept_small(self) -> bool:
        """Whether Azure lets the pool grow less far than its autoscaler would."""
        return self.azure_nodes is not None and self.azure_nodes < self.max_nodes

    @property
    def gpus_at_most(self) -> int:
        """GPUs that there are at the pool's largest, with those that are cordoned now or that Azure holds back."""
        return max(self.gpus_total + self.gpus_cordoned, self.can_grow_to or 0)

    @property
    def grows(self) -> str:
        """How far the pool grows and how long that takes, in words: "grows to 8, usually within 6 minutes"."""
        stopped_by = self.azure_limit if self.is_kept_small else ""
        return growth.grows(
            self.gpus_total + self.gpus_cordoned, self.growing_minutes, stopped_by
        )

    @property
    def free(self) -> int:
        """GPUs that can be had and are not allocated; 0 when nodes went away under live allocations."""
        return max(0, self.gpus_total - self.allocated)

    @property
    def free_and_ready(self) -> int:
        """Those of the free GPUs whose nodes stand already; the pool grows for the others."""
        return (
            min(self.free, max(0, self.gpus_ready - self.allocated))
            if self.can_grow_to
            else self.free
        )

    @property
    def free_words(self) -> str:
        """What is free of it, as people read it beside its name."""
        return growth.free(
            self.free, ready=self.free_and_ready, cordoned=self.gpus_cordoned
        )

    def take(self, gpus: int) -> bool:
        """Move `gpus` from free to allocated by conditional update; False, and nothing moved, when too few are free."""
        return bool(
            Flavor.objects.filter(
                pk=self.pk, gpus_total__gte=F("allocated") + gpus
            ).update(allocated=F("allocated") + gpus)
        )

    def put_back(self, gpus: int) -> None:
        """Move `gpus` from allocated to free."""
        Flavor.objects.filter(pk=self.pk).update(allocated=F("allocated") - gpus)
