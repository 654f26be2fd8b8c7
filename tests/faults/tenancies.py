"""Tenancies that a worker still has to make true."""

from datetime import timedelta

from django.utils import timezone

from accounts.roles import Role
from fleet.models import Cluster
from provisioning.actions import look_again
from provisioning.models import Tenancy
from tests import factories
from tests.faults.world import World
from tests.services.process import wait_until


def cluster_of(world: World) -> Cluster:
    """The world's cluster as the portal knows it, with its kind of GPU."""
    made = factories.cluster(
        world.name, kubeconfig=world.kubeconfig, most_at_once=16, writes_per_second=1000
    )
    factories.flavor(made, "a100-80gb", node_labels={"accelerator": "nvidia-a100"})
    return made


def wanted(world: World, number: int, *, on: Cluster | None = None) -> list[Tenancy]:
    """This many tenancies, each of a team of its own, desired and not there yet."""
    cluster = on or cluster_of(world)
    return [factories.tenancy(on=cluster) for _ in range(number)]


def hide(tenancies: list[Tenancy]) -> None:
    """Put the next look far ahead, so that no sweep finds them before the test wants it."""
    later = timezone.now() + timedelta(hours=1)
    Tenancy.objects.filter(pk__in=[t.pk for t in tenancies]).update(requeue_at=later)


def are_true(tenancies: list[Tenancy]) -> bool:
    """Whether the database says that all stand in their newest generation."""
    return Tenancy.objects.converged().filter(
        pk__in=[t.pk for t in tenancies]
    ).count() == len(tenancies)


def look_at_all(tenancies: list[Tenancy], *, seconds: float = 120) -> None:
    """Have a running worker look at all of them once more, and wait until it has."""
    since, lead = timezone.now(), factories.person("", Role.PLATFORM_LEAD)
    rows = Tenancy.objects.filter(pk__in=[t.pk for t in tenancies])
    for tenancy in tenancies:
        look_again(tenancy, by=lead, now=since)
    wait_until(
        lambda: not rows.exclude(last_looked_at__gte=since, lease_until=None).exists(),
        what="a second look at all",
        seconds=seconds,
    )
