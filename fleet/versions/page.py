"""The page of versions: each kind of GPU on each cluster, and in what clusters differ."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

from django.urls import reverse

from fleet.models import Cluster, Flavor
from fleet.presenting import how_away
from fleet.versions.comparing import counts, main, marks, minority, ordered
from fleet.versions.reading import Component
from ui.amounts import ago, listed
from ui.parts import Cell, Columns, Row

COLUMNS: Columns = [
    "Kind of GPU",
    "Cluster",
    "Kubernetes",
    "Queues",
    "Driver",
    "CUDA up to",
    "Container runtime",
    "System",
    "Seen",
]
NOT_TOLD = "not told"
# A cluster is looked at twice a minute: older than this, its nodes may be others by now.
FRESH_SECONDS = 300
MAX_PLACES = 6


class Place(TypedDict):
    """A version and where it is, in words."""

    version: str
    where: str


class Difference(TypedDict):
    """A component that is not the same everywhere: its versions, the newest first."""

    label: str
    versions: Sequence[Place]


class Page(TypedDict):
    """What the page shows; `untold` are the clusters on which no node tells its driver."""

    columns: Columns
    rows: Sequence[Row]
    differences: Sequence[Difference]
    untold: Sequence[Cluster]


def _queues(cluster: Cluster) -> str:
    version = cluster.queue_version
    return f"{cluster.get_queueing_display()} {version}" if version else ""


# What is compared from cluster to cluster, in the order of the page.
OF_CLUSTER: Mapping[str, Callable[[Cluster], str]] = {
    "Kubernetes": lambda cluster: cluster.version,
    "Queues": _queues,
}
OF_NODES: Mapping[str, Component] = {
    "Driver": Component.DRIVER,
    "CUDA up to": Component.CUDA,
    "Container runtime": Component.RUNTIME,
    "Operating system": Component.OS,
    "Kernel": Component.KERNEL,
}
COMPARED = (*OF_CLUSTER, *OF_NODES)


@dataclass(frozen=True)
class Line:
    """A kind of GPU on its cluster; None for a cluster of which no kind is described."""

    cluster: Cluster
    flavor: Flavor | None = None

    @property
    def versions(self) -> Mapping[str, Any]:
        """What its nodes run, as it is kept; empty where none was seen."""
        return self.flavor.versions if self.flavor else {}

    def of_nodes(self, component: Component) -> str:
        """What most of its nodes have; empty where that is not known."""
        return main(self.versions, component)

    def spread(self, component: Component) -> str:
        """In what nodes of the kind differ among themselves."""
        return minority(self.versions, component)

    def version(self, label: str) -> str:
        """What is compared of it under a label; empty where that is not known."""
        if label in OF_CLUSTER:
            return OF_CLUSTER[label](self.cluster)
        return self.of_nodes(OF_NODES[label])

    def having(self, label: str) -> Iterable[tuple[str, str]]:
        """Each version of it, and what there has it: "A100 80 GB", "A100 80 GB: 2 of 8 nodes"."""
        if label in OF_CLUSTER:
            return [(self.version(label), self.kind)]
        found = counts(self.versions, OF_NODES[label])
        if len(found) == 1:
            return [(found[0]["version"], self.kind)]
        total = self.versions.get("nodes")
        return [
            (one["version"], f"{self.kind}: {one['nodes']} of {total} nodes")
            for one in found
        ]

    @property
    def kind(self) -> str:
        """What people call the kind of GPU on its cluster; empty for a cluster without one."""
        return self.flavor.words if self.flavor else ""


def page_of(clusters: Iterable[Cluster], *, now: datetime) -> Page:
    """The page about these clusters; they come with their flavors prefetched."""
    lines = sorted(_lines(clusters), key=_place)
    marked = {label: marks(line.version(label) for line in lines) for label in COMPARED}
    return {
        "columns": COLUMNS,
        "rows": [_row(line, marked, now) for line in lines],
        "differences": list(_differences(lines)),
        "untold": _untold(lines),
    }


def _lines(clusters: Iterable[Cluster]) -> Iterable[Line]:
    for cluster in clusters:
        flavors = cluster.flavors.all()
        yield from (Line(cluster, flavor) for flavor in flavors)
        if not flavors:
            yield Line(cluster)


def _place(line: Line) -> tuple[bool, str, int, str]:
    """The same kind on several clusters stands together, which is what people compare."""
    flavor = line.flavor
    kind = ("", 0) if flavor is None else (flavor.device, -flavor.memory_gb)
    return flavor is None, *kind, line.cluster.title


def _row(line: Line, marked: Mapping[str, Mapping[str, str]], now: datetime) -> Row:
    def cell(label: str, *notes: str, unknown: str) -> Cell:
        version = line.version(label)
        said = filter(None, (marked[label].get(version, ""), *notes))
        return {"text": version or unknown, "sub": " · ".join(said)}

    kernel = line.of_nodes(Component.KERNEL)
    unknown = NOT_TOLD if line.of_nodes(Component.KUBELET) else "not known"
    return {
        "cells": [
            {
                "text": line.flavor.words if line.flavor else "No kind of GPU",
                "sub": line.of_nodes(Component.PRODUCT),
            },
            {
                "text": line.cluster.title,
                "href": reverse("cluster", args=[line.cluster.name]),
            },
            cell("Kubernetes", _kubelets(line), unknown="not known"),
            cell("Queues", unknown="not known"),
            cell("Driver", line.spread(Component.DRIVER), unknown=unknown),
            cell("CUDA up to", line.spread(Component.CUDA), unknown=unknown),
            cell("Container runtime", line.spread(Component.RUNTIME), unknown=unknown),
            cell(
                "Operating system",
                f"kernel {kernel}" if kernel else "",
                line.spread(Component.OS),
                line.spread(Component.KERNEL),
                unknown=unknown,
            ),
            _seen(line, now),
        ]
    }


def _kubelets(line: Line) -> str:
    """What nodes run where it is not the release of the API server."""
    kubelet = line.of_nodes(Component.KUBELET)
    if not kubelet or (
        kubelet == line.cluster.version and not line.spread(Component.KUBELET)
    ):
        return ""
    spread = line.spread(Component.KUBELET)
    return f"nodes {kubelet}{f', {spread}' if spread else ''}"


def _seen(line: Line, now: datetime) -> Cell:
    """When its nodes were seen last, and why that is not now."""
    flavor, cluster = line.flavor, line.cluster
    if flavor is None:
        why = f"the cluster {how_away(cluster)}" if cluster.is_away else ""
        return {"text": "–", "sub": why}
    why = _why_not_now(flavor, cluster, now)
    if flavor.versions_at is None:
        return {"text": "not yet", "sub": why}
    return {"since": flavor.versions_at, "sub": why}


def _why_not_now(flavor: Flavor, cluster: Cluster, now: datetime) -> str:
    if not cluster.is_observed:
        return "the portal does not see its nodes"
    if cluster.is_away:
        last = cluster.last_contact_at
        since = f", last contact {ago(last, now)}" if last else ""
        return f"the cluster {how_away(cluster)}{since}"
    if cluster.capacity_doubt:
        return "the cluster's list of nodes is not believed now"
    seen, counted = flavor.versions_at, flavor.gpus_seen_at
    if counted is None:
        return "a worker looks within a minute"
    if seen is None or seen < counted:
        return "no node stands now" if seen else "no node of this kind has stood yet"
    if (now - seen).total_seconds() > FRESH_SECONDS:
        return "no worker has looked since"
    return ""


def _differences(lines: Sequence[Line]) -> Iterable[Difference]:
    there: dict[Cluster, list[str]] = defaultdict(list)
    for line in lines:
        there[line.cluster].append(line.kind)
    for label in COMPARED:
        where: dict[str, dict[Cluster, list[str]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for line in lines:
            for version, kind in line.having(label):
                where[version][line.cluster].append(kind)
        known = ordered(version for version in where if version)
        if len(known) > 1:
            yield {
                "label": label,
                "versions": [
                    {"version": version, "where": _places(where[version], there)}
                    for version in known
                ],
            }


def _places(
    kinds: Mapping[Cluster, list[str]], there: Mapping[Cluster, list[str]]
) -> str:
    """Where a version is: clusters, with the kinds that have it where others there do not; of very many the number."""
    found = [
        cluster.title
        if names == there[cluster]
        else f"{cluster.title} ({listed(names)})"
        for cluster, names in sorted(kinds.items(), key=lambda one: one[0].title)
    ]
    more = len(found) - MAX_PLACES
    return listed([*found[:MAX_PLACES], f"{more} more"] if more > 0 else found)


def _untold(lines: Sequence[Line]) -> list[Cluster]:
    """Clusters whose nodes were seen and of which none tells a driver: GPU Feature Discovery does not run there."""
    seen: dict[Cluster, bool] = {}
    for line in lines:
        if line.flavor is not None and line.flavor.versions_at is not None:
            tells = bool(line.of_nodes(Component.DRIVER))
            seen[line.cluster] = seen.get(line.cluster, False) or tells
    return [cluster for cluster, tells in seen.items() if not tells]
