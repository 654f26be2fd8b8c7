"""What exists: clusters, and the kinds of GPU capacity they hold."""

from decimal import Decimal

from django.db import models
from django.db.models import F, Q

SLUG = r"^[a-z]([a-z0-9-]*[a-z0-9])?$"


class Environment(models.TextChoices):
    """What a namespace is for; production is never decided by the policy alone."""

    DEV = "dev", "Development"
    TEST = "test", "Test"
    PRODUCTION = "production", "Production"


class Cluster(models.Model):
    """A Kubernetes cluster of the fleet; credentials stay in a kubeconfig file that is only named here."""

    class Purpose(models.TextChoices):
        TRAINING = "training", "Training and fine-tuning"
        INFERENCE = "inference", "Production inference"
        DEVELOPMENT = "development", "Development and notebooks"

    class Delivery(models.TextChoices):
        APPLY = "apply", "Server-side apply"

    name = models.SlugField(max_length=40, unique=True)
    title = models.CharField(max_length=80)
    region = models.CharField(max_length=40)
    purpose = models.CharField(max_length=20, choices=Purpose.choices)
    delivery = models.CharField(max_length=10, choices=Delivery.choices, default=Delivery.APPLY)
    kubeconfig = models.CharField(max_length=200, blank=True)
    context = models.CharField(max_length=100, blank=True)
    cohort = models.CharField(max_length=60, default="quartermaster")
    borrow_percent = models.PositiveSmallIntegerField(default=0)
    storage_class = models.CharField(max_length=60, blank=True)
    enabled = models.BooleanField(default=True)

    reachable = models.BooleanField(null=True)
    message = models.CharField(max_length=600, blank=True)
    version = models.CharField(max_length=40, blank=True)
    last_contact_at = models.DateTimeField(null=True)
    looked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=Q(name__regex=SLUG), name="a_cluster_name_is_a_dns_label"),
            models.CheckConstraint(
                condition=Q(borrow_percent__lte=100), name="borrowing_is_at_most_as_much_again"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def health(self) -> str:
        """`good`, `bad` or `waiting` (never looked at), for the state badge."""
        return {True: "good", False: "bad", None: "waiting"}[self.reachable]


class FlavorQuerySet(models.QuerySet["Flavor"]):
    """Ways to look at flavors."""

    def offered(self) -> "FlavorQuerySet":
        """What may be asked for now: offered, on a cluster that is in use."""
        return self.filter(is_offered=True, cluster__enabled=True)


class Flavor(models.Model):
    """A kind of GPU capacity on a cluster: Kueue's ResourceFlavor with a product, a size and a price.

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
    capacity_type = models.CharField(max_length=12, choices=Capacity.choices, default=Capacity.ON_DEMAND)
    price_per_gpu_hour = models.DecimalField(max_digits=9, decimal_places=4)
    node_labels = models.JSONField(default=dict)
    node_taints = models.JSONField(default=list)
    cpu_per_gpu = models.PositiveSmallIntegerField(default=8)
    memory_gib_per_gpu = models.PositiveSmallIntegerField(default=64)
    gpus_total = models.PositiveIntegerField(default=0)
    gpus_seen_at = models.DateTimeField(null=True)
    allocated = models.IntegerField(default=0)
    is_offered = models.BooleanField(default=True)

    objects = FlavorQuerySet.as_manager()

    class Meta:
        ordering = ["cluster__name", "price_per_gpu_hour", "name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="a_flavor_is_on_a_cluster_once"),
            models.CheckConstraint(condition=Q(name__regex=SLUG), name="a_flavor_name_is_a_dns_label"),
            models.CheckConstraint(condition=Q(allocated__gte=0), name="allocated_gpus_are_not_negative"),
            models.CheckConstraint(
                condition=Q(price_per_gpu_hour__gt=Decimal(0)), name="a_gpu_hour_has_a_price"
            ),
            models.CheckConstraint(condition=Q(gpus_per_node__gte=1), name="a_node_has_a_gpu"),
        ]

    def __str__(self) -> str:
        return f"{self.product} {self.memory_gb} GB · {self.cluster.name}"

    @property
    def free(self) -> int:
        """GPUs that exist and are not allocated; 0 when nodes went away under live allocations."""
        return max(0, self.gpus_total - self.allocated)

    def take(self, gpus: int) -> bool:
        """Move `gpus` from free to allocated by conditional update; False, and nothing moved, when too few are free."""
        return bool(
            Flavor.objects.filter(pk=self.pk, gpus_total__gte=F("allocated") + gpus).update(
                allocated=F("allocated") + gpus
            )
        )

    def put_back(self, gpus: int) -> None:
        """Move `gpus` from allocated to free."""
        Flavor.objects.filter(pk=self.pk).update(allocated=F("allocated") - gpus)
