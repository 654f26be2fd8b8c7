"""Kueue's Topology-Aware Scheduling: on which nodes the pods of a pod set go, or in Kueue's words why on none. Pure.

Levels go from the widest to the node. Slices of pods are not kept together: only the level of the whole is.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.placing import ENDED, selects, untolerated
from sandbox.kubernetes.pod_resources import pod_amounts
from sandbox.kubernetes.quantities import parse

Object = dict[str, Any]
Domain = tuple[str, ...]
HOSTNAME = "kubernetes.io/hostname"
GATE = "kueue.x-k8s.io/topology"
WORKLOAD_OF = "kueue.x-k8s.io/workload"
WAYS = ("required", "preferred", "unconstrained")
ANNOTATIONS = tuple(f"kueue.x-k8s.io/podset-{way}-topology" for way in WAYS)
SLICE_LEVEL, SLICE_SIZE = (
    "kueue.x-k8s.io/podset-slice-required-topology",
    "kueue.x-k8s.io/podset-slice-size",
)


def request_of(template: Object) -> Object:
    """What the annotations of a pod template ask of a topology."""
    asked = part(part(template, "metadata"), "annotations")
    found: Object = {}
    for way, name in zip(WAYS, ANNOTATIONS, strict=True):
        if name in asked:
            found[way] = (
                asked[name] if way != "unconstrained" else asked[name] == "true"
            )
    if SLICE_LEVEL in asked:
        found["podSetSliceRequiredTopology"] = asked[SLICE_LEVEL]
    if SLICE_SIZE in asked:
        found["podSetSliceSize"] = int(asked[SLICE_SIZE])
    return found


@dataclass
class _Free:
    """What a node has left, and where it is."""

    domain: Domain
    amounts: dict[str, int]


class Topologies:
    """The free room of nodes by the topologies of flavors; `take` counts what was just admitted."""

    def __init__(
        self,
        topologies: Mapping[str, Object],
        nodes: Sequence[Object],
        pods: Iterable[Object],
        admitted: Iterable[Object],
    ) -> None:
        self._levels = {
            name: tuple(
                str(one["nodeLabel"]) for one in items(part(each, "spec"), "levels")
            )
            for name, each in topologies.items()
        }
        self._nodes = [
            one for one in nodes if not part(one, "spec").get("unschedulable")
        ]
        self._used: dict[str, Counter[str]] = {}
        if not self._levels:
            return
        for pod in pods:
            # Those of Kueue's own are counted by what their Workloads were given.
            ours = WORKLOAD_OF in part(part(pod, "metadata"), "annotations")
            node = part(pod, "spec").get("nodeName")
            if node and not ours and part(pod, "status").get("phase") not in ENDED:
                self._use(str(node), _requests(pod), 1)
        for workload in admitted:
            given = items(
                part(part(workload, "status"), "admission"), "podSetAssignments"
            )
            for pod_set, one in zip(
                items(part(workload, "spec"), "podSets"), given, strict=False
            ):
                self.take(pod_set, one)

    def take(self, pod_set: Object, given: Object) -> None:
        """Count the pods of a pod set on the nodes that it was given."""
        for domain, count in domains_of(part(given, "topologyAssignment")):
            self._use(domain[-1], _requests(part(pod_set, "template")), count)

    def gather(
        self, pod_set: Object, name: str, flavor: Object | None
    ) -> tuple[Object | None, str]:
        """The assignment of a pod set in a flavor, or why there is none; nothing for a flavor without a topology."""
        spec = part(flavor or {}, "spec")
        topology = str(spec.get("topologyName") or "")
        if not topology or topology not in self._levels:
            return None, ""
        levels = self._levels[topology]
        asked = part(pod_set, "topologyRequest")
        level = asked.get("required") or asked.get("preferred") or levels[-1]
        if level not in levels:
            return None, f'Flavor "{name}" does not contain the requested level'
        wanted = int(pod_set.get("count") or 0)
        free = list(self._free(pod_set, spec, levels))
        needs = _requests(part(pod_set, "template"))
        room = {one.domain: _fits(one.amounts, needs) for one in free}
        is_required, depth = "required" in asked, levels.index(level)
        chosen = _chosen(
            room,
            wanted,
            depth,
            is_required=is_required,
            is_spread=not {*asked} & {*WAYS[:2]},
        )
        if chosen is None:
            return None, _refusal(
                topology, free, room, needs, wanted, depth if is_required else None
            )
        return assignment(levels, chosen), ""

    def _use(self, node: str, amounts: Mapping[str, int], count: int) -> None:
        used = self._used.setdefault(node, Counter())
        for resource, amount in amounts.items():
            used[resource] += amount * count

    def _free(
        self, pod_set: Object, flavor: Object, levels: Sequence[str]
    ) -> Iterator[_Free]:
        pod = part(part(pod_set, "template"), "spec")
        tolerations = [*items(pod, "tolerations"), *items(flavor, "tolerations")]
        selector = {**part(pod, "nodeSelector"), **part(flavor, "nodeLabels")}
        for node in self._nodes:
            labels = part(part(node, "metadata"), "labels")
            if not selects(selector, labels) or not all(
                level in labels for level in levels
            ):
                continue
            if untolerated(items(part(node, "spec"), "taints"), tolerations):
                continue
            used = self._used.get(str(node["metadata"]["name"]), Counter())
            amounts = {
                resource: parse(amount).nanos - used[resource]
                for resource, amount in part(
                    part(node, "status"), "allocatable"
                ).items()
            }
            yield _Free(tuple(str(labels[level]) for level in levels), amounts)


def assignment(levels: Sequence[str], chosen: Mapping[Domain, int]) -> Object:
    """Domains with their pods as Kueue writes them down, what is the same once; of nodes, their names alone."""
    shown = levels[-1:] if levels[-1] == HOSTNAME else levels
    domains = [
        (domain[-len(shown) :], count) for domain, count in sorted(chosen.items())
    ]
    counts = [count for _, count in domains]
    return {
        "levels": [*shown],
        "slices": [
            {
                "domainCount": len(domains),
                "podCounts": {"universal": counts[0]}
                if len({*counts}) == 1
                else {"individual": counts},
                "valuesPerLevel": [
                    _values([domain[at] for domain, _ in domains])
                    for at in range(len(shown))
                ],
            }
        ],
    }


def domains_of(given: Object) -> Iterator[tuple[Domain, int]]:
    """Each domain of an assignment and its pods."""
    for one in items(given, "slices"):
        number = int(one["domainCount"])
        counts = part(one, "podCounts")
        columns = [_column(values, number) for values in items(one, "valuesPerLevel")]
        pods = counts.get("individual") or [counts["universal"]] * number
        yield from zip(zip(*columns, strict=True), pods, strict=True)


def _values(found: Sequence[str]) -> Object:
    if len({*found}) == 1:
        return {"universal": found[0]}
    alike = takewhile(lambda letters: len({*letters}) == 1, zip(*found, strict=False))
    prefix = "".join(letters[0] for letters in alike)
    roots = [one.removeprefix(prefix) for one in found]
    return {"individual": {**({"prefix": prefix} if prefix else {}), "roots": roots}}


def _column(values: Object, number: int) -> list[str]:
    if "universal" in values:
        return [str(values["universal"])] * number
    one = part(values, "individual")
    return [
        f"{one.get('prefix', '')}{root}{one.get('suffix', '')}" for root in one["roots"]
    ]


def _chosen(
    room: Mapping[Domain, int],
    wanted: int,
    depth: int,
    *,
    is_required: bool,
    is_spread: bool,
) -> dict[Domain, int] | None:
    """Nodes with their pods, in the narrowest domain that has room; None where there is none.

    What is only preferred goes up level by level, and at the widest over several domains.
    """
    lowest = depth if is_required else 0
    for at in range(depth, lowest - 1, -1):
        sums = Counter[Domain]()
        for domain, count in room.items():
            sums[domain[: at + 1]] += count
        fit = min(
            ((total, domain) for domain, total in sums.items() if total >= wanted),
            default=None,
        )
        if fit is not None:
            inside = {
                one: count for one, count in room.items() if one[: at + 1] == fit[1]
            }
            return _filled(inside, wanted)
    if (is_spread or not is_required) and sum(room.values()) >= wanted:
        return _filled(room, wanted)
    return None


def _filled(room: Mapping[Domain, int], wanted: int) -> dict[Domain, int]:
    """As few nodes as possible, the fullest one that takes all the rest last."""
    found: dict[Domain, int] = {}
    left = dict(room)
    while wanted:
        enough = [(count, domain) for domain, count in left.items() if count >= wanted]
        count, domain = (
            min(enough)
            if enough
            else min((-count, domain) for domain, count in left.items())
        )
        found[domain] = min(abs(count), wanted)
        wanted -= found[domain]
        del left[domain]
    return found


def _refusal(
    topology: str,
    free: Sequence[_Free],
    room: Mapping[Domain, int],
    needs: Mapping[str, int],
    wanted: int,
    depth: int | None,
) -> str:
    sums = Counter[Domain]()
    for domain, count in room.items():
        sums[() if depth is None else domain[: depth + 1]] += count
    most = max(sums.values(), default=0)
    said = (
        f'topology "{topology}" allows to fit only {most} out of {wanted} pod(s)'
        if most
        else f'topology "{topology}" doesn\'t allow to fit any of {wanted} pod(s)'
    )
    full = Counter(_lacking(one.amounts, needs) for one in free if not room[one.domain])
    if not full:
        return said
    excluded = ", ".join(
        f'resource "{name}": {count}' for name, count in sorted(full.items())
    )
    return f"{said}. Total nodes: {len(free)}; excluded: {excluded}"


def _requests(pod: Object) -> dict[str, int]:
    amounts = pod_amounts(part(pod, "spec"), "requests")
    return {
        "pods": parse(1).nanos,
        **{name: parse(amount).nanos for name, amount in amounts.items()},
    }


def _fits(amounts: Mapping[str, int], needs: Mapping[str, int]) -> int:
    return min(
        max(0, amounts.get(name, 0)) // need for name, need in needs.items() if need
    )


def _lacking(amounts: Mapping[str, int], needs: Mapping[str, int]) -> str:
    """The resource of which a node has the least for a pod."""
    return min(
        needs,
        key=lambda name: (
            amounts.get(name, 0) // needs[name] if needs[name] else 1,
            name,
        ),
    )
