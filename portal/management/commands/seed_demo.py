"""Sample clusters, prices and teams for the demo; run again it adds nothing twice."""

import json
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from accounts.actions import take_over
from accounts.cost_centres import actions as cost_centres
from accounts.directory.client import graph
from accounts.models import Team, User
from allocations.budgets.actions import set_budget
from allocations.budgets.money import month_of
from approvals.decisions import actions as decisions
from approvals.models import Request
from approvals.requests.actions import submit
from approvals.requests.wanted import Wanted, resolve
from capacity.connection import home_subscription, is_connected
from capacity.metering.fleet import note_fleet
from capacity.models import MachinePrice, Meter, PastPrice, PriceRegion, Reading
from capacity.prices import syncing
from capacity.subscriptions import observing
from connectors.entra import Claims
from fleet.clusters.actions import DEFAULT_BORROW_PERCENT
from fleet.models import Cluster, Flavor
from notebooks.profile_desk import actions as profiles
from onboarding.actions import Enrolment, Start, onboard
from portal.management import sample_services
from provisioning.clusters.observe import look_at
from provisioning.models import Tenancy
from workloads.template_desk.actions import keep as keep_template

TENANT = "11111111-1111-4111-8111-111111111111"
ADA, MALLORY, PRIYA = (f"00000000-0000-4000-8000-{number:012d}" for number in (1, 8, 4))
VISION, SPEECH = (f"00000000-0000-4000-9000-{number:012d}" for number in (1, 3))
SPOT = "kubernetes.azure.com/scalesetpriority"
GPU_TAINT = [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}]
CLUSTERS = (
    ("training-eastus", "Training, East US", "training"),
    ("dev-eastus", "Development, East US", "development"),
)
# Where services are measured (scripts.demo lets the portal ask it).
PROMETHEUS = {"dev-eastus": "monitoring/prometheus-operated:9090"}
# USD per GPU-hour: Azure pay-as-you-go of the node's size in East US divided by its GPUs, as of November 2026.
FLAVORS = (
    ("training-eastus", "a100-80gb", "A100", 80, 8, "3.6700", "nvidia-a100"),
    ("training-eastus", "h100-80gb", "H100", 80, 8, "6.9800", "nvidia-h100"),
    ("dev-eastus", "t4-16gb", "T4", 16, 4, "0.5260", "nvidia-t4"),
    ("dev-eastus", "a10-24gb", "A10", 24, 2, "1.6000", "nvidia-a10"),
)

# A template of the platform team's own, beside those that come with the product.
RECIPE = """
slug: fine-tune-detector
title: Fine-tune the detector
help: The recipe behind the street scenes, on the GPUs of one node. Say how fast it learns, and how long.
shape: single-node
images: [registry.example.com/vision/detector:2026.11, registry.example.com/vision/detector:2026.8]
parameters:
  program: {default: [train.py, --config, configs/street.yaml], fixed: true}
  gpus: {default: 2, minimum: 1, maximum: 8}
  minutes: {default: 480, maximum: 2880, help: It needs six hours on two A100.}
  checkpoint: {default: /data/checkpoints}
  checkpoint_minutes: {default: 30}
  learning_rate:
    type: choice
    title: Learning rate
    choices: ["0.01", "0.001", "0.0001"]
    default: "0.001"
    variable: LEARNING_RATE
  epochs: {type: count, title: Epochs, minimum: 1, maximum: 90, default: 12, variable: EPOCHS}
variables: {TORCH_HOME: /data/torch}
claims: [{name: datasets, path: /data}]
gpu_memory: 40
"""

OPENAI = {"region": "eastus", "model": "gpt-4o-mini"}
# The shapes of notebooks, from none to a whole A100.
PROFILES = (
    """
slug: cpu
title: No GPU
help: For reading data and writing code. Ask for GPUs when the model is there.
order: 10
image: registry.example.com/notebook/minimal:2026.11
cpus: 4
memory: 16
""",
    """
slug: t4
title: 1 × T4
help: To try a model on a GPU.
order: 20
default: true
image: registry.example.com/notebook/pytorch:2.9-cuda13
cpus: 4
memory: 28
gpus: 1
flavor: t4-16gb
idle_minutes: 60
""",
    """
slug: a100
title: 1 × A100 80 GB
help: PyTorch or JAX with a GPU of your own, where a run would be too long to wait for.
order: 30
image: registry.example.com/notebook/pytorch:2.9-cuda13
cpus: 8
memory: 64
gpus: 1
flavor: a100-80gb
idle_minutes: 60
hours: 24
options:
  image:
    title: Image
    choices:
      pytorch: {title: PyTorch 2.9, default: true, image: registry.example.com/notebook/pytorch:2.9-cuda13}
      jax: {title: JAX 0.9, image: registry.example.com/notebook/jax:0.9}
  size:
    title: Size
    choices:
      one: {title: 1 GPU, default: true, gpus: 1, cpus: 8, memory: 64}
      two: {title: 2 GPUs, gpus: 2, cpus: 16, memory: 128}
""",
)


class Command(BaseCommand):
    """Fill an empty demo through the same actions that pages and API use."""

    help = "Sample clusters, prices and teams for the demo."

    def add_arguments(self, parser: CommandParser) -> None:
        """The repository of a cluster that is delivered to by Git."""
        parser.add_argument(
            "--git", default="", help="a bare repository in QM_GIT_LOCAL_DIR"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Add what is missing, and look at every cluster once."""
        _clusters()
        if options["git"]:
            _followed(options["git"])
        for cluster in Cluster.objects.all():
            look_at(cluster.pk, now=timezone.now)
        if is_connected():
            _subscription(now=timezone.now())
        if not Team.objects.exists():
            _teams()
        # The sandbox forgets it as it ends, so that every start tells it again.
        said = json.dumps([*sample_services.traffic()])
        (settings.ENV.data_dir / "traffic.json").write_text(said, encoding="utf-8")


def _clusters() -> None:
    """Two clusters with their kinds of GPU, of which two have no node until somebody needs them."""
    for name, title, purpose in CLUSTERS:
        Cluster.objects.get_or_create(
            name=name,
            defaults={
                "title": title,
                "region": "eastus",
                "purpose": purpose,
                "kubeconfig": f"kubeconfig-{name}.yaml",
                "borrow_percent": DEFAULT_BORROW_PERCENT,
                "azure_id": _aks(name),
                "prometheus": PROMETHEUS.get(name, ""),
            },
        )
    for cluster, name, product, memory, per_node, price, accelerator in FLAVORS:
        Flavor.objects.get_or_create(
            cluster=Cluster.objects.get(name=cluster),
            name=name,
            defaults={
                "product": product,
                "memory_gb": memory,
                "gpus_per_node": per_node,
                "price_per_gpu_hour": Decimal(price),
                "priced_at": timezone.now(),
                "node_labels": {"accelerator": accelerator},
                "node_taints": GPU_TAINT,
            },
        )
    Flavor.objects.get_or_create(
        cluster=Cluster.objects.get(name="dev-eastus"),
        name="h100-nvl-94gb",
        defaults={
            "product": "H100 NVL",
            "memory_gb": 94,
            "gpus_per_node": 1,
            "price_per_gpu_hour": Decimal("6.9800"),
            "node_labels": {"accelerator": "nvidia-h100-nvl"},
            "node_taints": GPU_TAINT,
            "max_nodes": 4,
            "growing_minutes": 1,
            "follows_list": is_connected(),
        },
    )

    # What the same node costs on spot, with an eviction rate of 5 % an hour.
    Flavor.objects.get_or_create(
        cluster=Cluster.objects.get(name="training-eastus"),
        name="a100-80gb-spot",
        defaults={
            "product": "A100",
            "memory_gb": 80,
            "gpus_per_node": 8,
            "price_per_gpu_hour": Decimal("1.4700"),
            "priced_at": timezone.now(),
            "capacity_type": Flavor.Capacity.SPOT,
            "interruption_hours": 20,
            "node_labels": {"accelerator": "nvidia-a100-spot", SPOT: "spot"},
            "node_taints": [
                *GPU_TAINT,
                {"key": SPOT, "value": "spot", "effect": "NoSchedule"},
            ],
            "max_nodes": 2,
            "growing_minutes": 1,
        },
    )


def _aks(name: str) -> str:
    """The resource id of a cluster of the sandbox; empty where the demo is not connected to Azure."""
    env = settings.ENV
    if not is_connected():
        return ""
    group = f"/subscriptions/{env.azure_subscription_id}/resourceGroups/{env.azure_resource_group}"
    return f"{group}/providers/Microsoft.ContainerService/managedClusters/{name}"


def _subscription(*, now: datetime) -> None:
    """Read the subscription once, and have been reading its quota for ten weeks, in which more and more of it ran."""
    observing.keep_known(now=now)
    observing.observe(home_subscription(), now=timezone.now)
    note_fleet(now=now)
    _prices(now=now)
    rows = [
        Reading(
            meter=meter,
            at=(now - timedelta(days=day)).replace(minute=0, second=0, microsecond=0),
            limit=meter.limit,
            # Half of what runs now was there ten weeks ago; every week goes its own way, and at its end less runs.
            used=round(
                meter.used
                * (1 - 0.5 * day / 70 - 0.06 * (day // 7 % 3))
                * (1 if day % 7 < 5 else 0.85)
            ),
        )
        for meter in Meter.objects.filter(key__startswith="quota:")
        for day in range(70, 0, -1)
    ]
    Reading.objects.bulk_create(rows, ignore_conflicts=True)


def _prices(*, now: datetime) -> None:
    """Read Azure's list once, and have been reading it for ten weeks, in which it changed three times."""
    syncing.keep_known(now=now)
    for region_id in PriceRegion.objects.due(now).values_list("pk", flat=True):
        syncing.read(region_id, now=timezone.now)
    syncing.follow()
    factors = {70: ("1.05", "0.8"), 41: ("1.05", "1.1"), 16: ("1", "1.25")}
    rows = [
        PastPrice(
            price=price,
            at=now - timedelta(days=days),
            on_demand=price.on_demand and price.on_demand * Decimal(usual),
            spot=price.spot and price.spot * Decimal(spot),
            one_year=price.one_year and price.one_year * Decimal(usual),
            three_years=price.three_years and price.three_years * Decimal(usual),
        )
        for price in MachinePrice.objects.all()
        for days, (usual, spot) in factors.items()
    ]
    if not PastPrice.objects.filter(at__lt=now - timedelta(days=1)).exists():
        PastPrice.objects.bulk_create(rows)


def _followed(repository: str) -> None:
    """A cluster that the portal has no access to: what it should be is committed, and somebody else applies it."""
    cluster, _ = Cluster.objects.get_or_create(
        name="inference-westus",
        defaults={
            "title": "Inference, West US",
            "region": "westus",
            "purpose": "inference",
            "delivery": "git",
            "git_url": repository,
        },
    )
    Flavor.objects.get_or_create(
        cluster=cluster,
        name="l4-24gb",
        defaults={
            "product": "L4",
            "memory_gb": 24,
            "gpus_per_node": 4,
            "price_per_gpu_hour": Decimal("0.81"),
            "node_labels": {"accelerator": "nvidia-l4"},
            "node_taints": GPU_TAINT,
            "gpus_total": 8,
            "gpus_ready": 8,
        },
    )


def _person(oid: str, *roles: str) -> User:
    known = graph().person(oid)
    if known is None:
        raise LookupError(f"The directory does not know {oid}.")
    claims = Claims(
        oid=oid, tid=TENANT, name=known.name, username=known.email, roles=roles
    )
    return take_over(
        claims, groups=graph().groups_of(oid), now=timezone.now(), address=known.email
    )


def _teams() -> None:
    now = timezone.now()
    ada, mallory, priya = _person(ADA), _person(MALLORY), _person(PRIYA, "PlatformLead")
    # Those of the demo's own teams, and those that its tours use.
    for code in ("CC-4100", "CC-4200", "CC-4300", "CC-4400"):
        cost_centres.confirm(code, by=priya, now=now)
    a100, t4 = Flavor.objects.get(name="a100-80gb"), Flavor.objects.get(name="t4-16gb")
    vision = onboard(
        Enrolment(
            name="Vision",
            entra_group=VISION,
            cost_centre="CC-4100",
            project="detection",
            environment="dev",
            cluster=a100.cluster,
            start=Start(
                flavor=a100, gpus=2, until=now + timedelta(days=7), purpose="training"
            ),
        ),
        by=ada,
        graph=graph(),
        now=now,
    )
    onboard(
        Enrolment(
            name="Speech",
            entra_group=SPEECH,
            cost_centre="CC-4200",
            project="recognition",
            environment="dev",
            cluster=t4.cluster,
            start=Start(
                flavor=t4, gpus=1, until=now + timedelta(days=3), purpose="notebook"
            ),
        ),
        by=mallory,
        graph=graph(),
        now=now,
    )
    for team, limit in (
        (vision.team, 40_000),
        (Team.objects.get(name="Speech"), 6_000),
    ):
        set_budget(team, month=month_of(now), limit_usd=Decimal(limit), by=priya)
    a100.refresh_from_db()
    wanted = Wanted.of_gpus(
        tenancy=vision.tenancy,
        flavor=a100,
        gpus=6,
        until=now + timedelta(days=5),
        purpose="training",
        reason="Retrain the detector on the new street scenes before the review on Friday.",
    )
    submit(wanted, by=ada, now=now)
    keep_template(
        RECIPE, by=priya, now=now, why="What Vision fine-tunes with, ready to start."
    )
    for text in PROFILES:
        profile = profiles.save(text, by=priya, now=now).profile
        profiles.publish(profile.slug, by=priya)
    speech = Team.objects.get(name="Speech")
    sample_services.add(Tenancy.objects.get(team=speech), by=priya, now=now)
    _rest_of_the_catalogue(vision.team, ada, now=now)
    model = _ask(
        speech,
        mallory,
        "openai",
        {**OPENAI, "thousand_tokens_per_minute": 10},
        days=2,
        now=now,
    )
    decisions.approve(
        model.pk, by=priya, expected_version=model.version, now=timezone.now()
    )


def _rest_of_the_catalogue(team: Team, by: User, *, now: datetime) -> None:
    """A volume, and something else than GPUs to decide."""
    _ask(
        team,
        by,
        "volume",
        {"cluster": "training-eastus", "name": "corpus", "gib": 500},
        days=13,
        now=now,
    )
    _ask(
        team,
        by,
        "openai",
        {**OPENAI, "thousand_tokens_per_minute": 30},
        days=14,
        now=now,
    )


def _ask(
    team: Team, by: User, key: str, spec: dict[str, Any], *, days: int, now: datetime
) -> Request:
    reason = (
        "The review on Friday needs the answers of the new model beside the old one’s."
    )
    return submit(
        resolve(key, spec, team=team, until=now + timedelta(days=days), reason=reason),
        by=by,
        now=now,
    )
