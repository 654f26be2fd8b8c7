"""What follows from whose queues a cluster has: with Volcano's no flavors share a resource, and nothing is lent."""

from collections.abc import Mapping
from typing import Any

from fleet.models import Cluster, Flavor
from web.refusals import BadInput, Conflict


def check_new(cluster: Cluster) -> None:
    """Refuse queues that the portal cannot keep; raises BadInput naming the field."""
    check_delivery(cluster)
    check_borrowing(cluster)
    check_hub(cluster)


def check_fixed(changed: Mapping[str, Any]) -> None:
    """Refuse other queues than at the registration: namespaces, quotas and runs are made for those of one kind."""
    if "queueing" in changed:
        raise Conflict(
            "Whose queues a cluster has is chosen when it is registered, and stays: namespaces, quotas and runs there "
            "are made for those.",
            code="queueing_fixed",
            field="queueing",
        )


def check_delivery(cluster: Cluster) -> None:
    """Refuse delivery by Git where the queues are Volcano's."""
    if cluster.has_volcano and cluster.delivery == Cluster.Delivery.GIT:
        raise BadInput(
            "The portal writes to a cluster with Volcano directly: it delivers Kueue's objects alone through Git.",
            code="not_by_git",
            field="delivery",
        )


def check_borrowing(cluster: Cluster) -> None:
    """Refuse borrowing where the queues are Volcano's: what is lent would not come back when its team wants it.

    Volcano's reclaim leaves out pods that may not preempt, which are all of the portal's priorities.
    """
    if cluster.has_volcano and cluster.borrow_percent:
        raise BadInput(
            "With Volcano teams borrow nothing: it takes nothing back for pods that may not preempt others, and no "
            "team's pod may. Say 0.",
            code="out_of_range",
            field="borrow_percent",
        )


def check_hub(cluster: Cluster) -> None:
    """Refuse a notebook hub where the queues are Volcano's: notebooks are let in by Kueue alone."""
    if cluster.has_volcano and cluster.jupyterhub_namespace:
        raise BadInput(
            "With Volcano there are no notebooks: they get their GPUs through Kueue’s queues. Leave this empty.",
            code="not_possible",
            field="jupyterhub_namespace",
        )


def check_resource(flavor: Flavor) -> None:
    """Refuse a second kind of GPU of one resource where the queues are Volcano's, which count by resource alone."""
    if not flavor.cluster.has_volcano:
        return
    other = (
        flavor.cluster.flavors.exclude(pk=flavor.pk)
        .filter(resource=flavor.resource)
        .first()
    )
    if other is not None:
        raise Conflict(
            f"Volcano’s queues count {flavor.resource} and cannot tell {other.name} from another kind of it. On a "
            "cluster with Volcano each kind of GPU has a resource of its own.",
            code="resource_taken",
            field="resource",
        )
