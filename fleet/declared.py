"""Clusters and flavors that the installation declares in a file, beside those that people add."""

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from django.db import transaction

from audit.actors import Actor
from fleet import planned_maintenance
from fleet.clusters.actions import add_cluster, change_cluster
from fleet.flavors.actions import add_flavor, change_flavor
from fleet.models import Cluster, Flavor
from web.refusals import BadInput

SETTINGS = Actor("settings", "", "The installation's settings")


@transaction.atomic
def declare(clusters: Sequence[Mapping[str, Any]]) -> list[str]:
    """Add what is declared and not there, change what differs, and leave everything else; returns what was done.

    Each cluster has `name`, what fleet.clusters.actions.CLUSTER_FIELDS names, and `flavors` likewise, but no
    maintenance: a file that is read anew would plan anew what is over or was taken back.
    Raises Refused naming the field, with nothing changed.
    """
    done: list[str] = []
    for declared in clusters:
        values = dict(declared)
        name, flavors = _name(values), values.pop("flavors", [])
        for field in sorted(planned_maintenance.FIELDS & values.keys()):
            raise BadInput(
                "A maintenance is planned on the cluster's page or over the API.",
                code="unknown_field",
                field=field,
            )
        cluster = Cluster.objects.filter(name=name).first()
        if cluster is None:
            cluster = add_cluster(name=name, values=values, by=SETTINGS)
            done.append(f"added cluster {name}")
        elif cluster.written_off_at is not None:
            done.append(f"left out cluster {name}, which is written off")
            continue
        else:
            change_cluster(cluster.pk, values=values, by=SETTINGS)
        for flavor in flavors:
            done += _declare_flavor(cluster, dict(flavor))
    return done


def _declare_flavor(cluster: Cluster, values: dict[str, Any]) -> list[str]:
    name = _name(values)
    try:
        values["price_per_gpu_hour"] = Decimal(
            str(values.get("price_per_gpu_hour", ""))
        )
    except InvalidOperation as error:
        raise BadInput(
            "Give a price in USD per GPU-hour.",
            code="bad_price",
            field="price_per_gpu_hour",
        ) from error
    known = Flavor.objects.filter(cluster=cluster, name=name).first()
    if known is None:
        add_flavor(cluster, name=name, values=values, by=SETTINGS)
        return [f"added flavor {name} of {cluster.name}"]
    change_flavor(known.pk, values=values, by=SETTINGS, price_is_meant=True)
    return []


def _name(values: dict[str, Any]) -> str:
    name = values.pop("name", None)
    if not isinstance(name, str):
        raise BadInput(
            "Every cluster and flavor has a name.", code="required", field="name"
        )
    return name
