"""Which flavors a Workload gets in a ClusterQueue, and in Kueue's words why it gets none. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from sandbox.kubernetes.capacity import Cell, Pool
from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.placing import selects, untolerated
from sandbox.kubernetes.pod_resources import pod_amounts
from sandbox.kubernetes.quantities import canonical, multiply, parse, written
from sandbox.kubernetes.topology import Topologies

Object = dict[str, Any]


class Mode(IntEnum):
    """How well it fits: not at all, once others have stopped, or now."""

    NONE = 0
    PREEMPT = 1
    FIT = 2


@dataclass
class Assignment:
    """The flavors of each pod set, what they take together, and what was in the way."""

    mode: Mode = Mode.FIT
    pod_sets: list[Object] = field(default_factory=list)
    usage: dict[Cell, int] = field(default_factory=lambda: defaultdict(int))
    why: str = ""
    short: set[Cell] = field(default_factory=set)


@dataclass(frozen=True)
class _Choice:
    flavor: str
    mode: Mode
    borrows: bool
    why: list[str]
    short: set[Cell]


def requests_of(
    workload: Object, covered: set[str]
) -> Iterator[tuple[str, int, dict[str, str]]]:
    """Name, count and requests of each pod set; `pods` is a request only where the queue counts pods."""
    for pod_set in items(part(workload, "spec"), "podSets"):
        count = int(pod_set.get("count") or 0)
        amounts = pod_amounts(part(part(pod_set, "template"), "spec"), "requests")
        asked = {
            name: multiply(amount, count)
            for name, amount in amounts.items()
            if parse(amount).nanos
        }
        if "pods" in covered:
            asked["pods"] = str(count)
        yield str(pod_set["name"]), count, dict(sorted(asked.items()))


def assign(
    workload: Object,
    queue: Object,
    flavors: Mapping[str, Object],
    pool: Pool,
    topologies: Topologies | None = None,
) -> Assignment:
    """The best assignment there is now; usage and pod sets are complete unless nothing fits."""
    found = Assignment()
    name, groups = (
        str(queue["metadata"]["name"]),
        items(part(queue, "spec"), "resourceGroups"),
    )
    covered = {
        str(resource)
        for group in groups
        for resource in group.get("coveredResources") or ()
    }
    for pod_set, (title, count, asked) in zip(
        items(part(workload, "spec"), "podSets"),
        requests_of(workload, covered),
        strict=True,
    ):
        given: dict[str, str] = {}
        problems = [
            f"resource {one} unavailable in ClusterQueue"
            for one in asked
            if one not in covered
        ]
        for group in groups if not problems else ():
            wanted = {
                one: asked[one] for one in asked if one in group["coveredResources"]
            }
            if wanted:
                choice = _choose(
                    wanted, group, queue, pod_set, flavors, pool, found.usage, name
                )
                problems += choice.why
                found.mode = min(found.mode, choice.mode)
                found.short |= choice.short
                for resource, amount in wanted.items():
                    given[resource] = choice.flavor
                    found.usage[choice.flavor, resource] += parse(amount).nanos
        if problems:
            found.mode = (
                found.mode if given and found.mode is not Mode.FIT else Mode.NONE
            )
            found.why = f"couldn't assign flavors to pod set {title}: {', '.join(sorted(set(problems)))}"
            if found.mode is Mode.NONE:
                return found
        usage = {one: canonical(amount) for one, amount in asked.items()}
        line: Object = {
            "count": count,
            "flavors": given,
            "name": title,
            "resourceUsage": usage,
        }
        if topologies is not None and found.mode is Mode.FIT:
            problem = _gather(line, pod_set, flavors, topologies)
            if problem:
                found.mode = Mode.NONE
                found.why = f"couldn't assign flavors to pod set {title}: {problem}"
                return found
        found.pod_sets.append(line)
    return found


def _gather(
    line: Object, pod_set: Object, flavors: Mapping[str, Object], topologies: Topologies
) -> str:
    """Put the nodes of a pod set into its line where a flavor of it has a topology; returns why none have room."""
    for name in dict.fromkeys(line["flavors"].values()):
        found, problem = topologies.gather(pod_set, name, flavors.get(name))
        if problem:
            return problem
        if found is not None:
            line["topologyAssignment"] = found
    return ""


def _choose(
    wanted: Mapping[str, str],
    group: Object,
    queue: Object,
    pod_set: Object,
    flavors: Mapping[str, Object],
    pool: Pool,
    taken: Mapping[Cell, int],
    name: str,
) -> _Choice:
    """The first flavor that fits; else the first where others could be stopped; else none, with every reason."""
    best, reasons = _Choice("", Mode.NONE, False, [], set()), list[str]()
    patient = (
        part(part(queue, "spec"), "flavorFungibility").get("whenCanBorrow")
        == "TryNextFlavor"
    )
    for quota in items(group, "flavors"):
        flavor = str(quota["name"])
        problem = _mismatch(pod_set, flavor, flavors.get(flavor))
        if problem:
            reasons.append(problem)
            continue
        choice = _judge(wanted, flavor, queue, pool, taken, name)
        if choice.mode is Mode.FIT and not (choice.borrows and patient):
            return choice
        reasons += choice.why
        if choice.mode > best.mode or (
            choice.mode is best.mode and best.borrows and not choice.borrows
        ):
            best = choice
    if best.mode is Mode.FIT:
        return best
    return _Choice(best.flavor, best.mode, best.borrows, reasons, best.short)


def _mismatch(pod_set: Object, name: str, flavor: Object | None) -> str:
    """Why the pods cannot run on the nodes of a flavor."""
    if flavor is None:
        return f"flavor {name} not found"
    spec, pod = part(flavor, "spec"), part(part(pod_set, "template"), "spec")
    tolerations = [*items(pod, "tolerations"), *items(spec, "tolerations")]
    for taint in items(spec, "nodeTaints"):
        if untolerated([taint], tolerations):
            shown = f"{{{taint.get('key')} {taint.get('value', '')} {taint.get('effect')} <nil>}}"
            return f"untolerated taint {shown} in flavor {name}"
    labels = part(spec, "nodeLabels")
    asked = {
        key: value for key, value in part(pod, "nodeSelector").items() if key in labels
    }
    return (
        "" if selects(asked, labels) else f"flavor {name} doesn't match node affinity"
    )


def _judge(
    wanted: Mapping[str, str],
    flavor: str,
    queue: Object,
    pool: Pool,
    taken: Mapping[Cell, int],
    name: str,
) -> _Choice:
    mode, borrows, why, short = Mode.FIT, False, list[str](), set[Cell]()
    for resource, amount in wanted.items():
        cell, before = (flavor, resource), taken.get((flavor, resource), 0)
        asked = parse(amount).nanos
        where = f"{resource} in flavor {flavor}"
        if before + asked > (most := pool.most(name, cell)):
            why.append(
                f"insufficient quota for {where}, previously considered podsets requests "
                f"({written(before, amount)}) + current podset request ({amount}) > maximum capacity "
                f"({written(most, amount)})"
            )
            mode = Mode.NONE
            continue
        borrows = borrows or pool.borrowed(name, cell, before + asked) > 0
        lacking = before + asked - pool.available(name, cell)
        if lacking <= 0:
            continue
        why.append(
            f"insufficient unused quota for {where}, {written(lacking, amount)} more needed"
        )
        short.add(cell)
        may = before + asked <= pool.share(
            name, cell
        ).nominal or _may_preempt_while_borrowing(queue)
        mode = min(mode, Mode.PREEMPT if may else Mode.NONE)
    return _Choice(flavor, mode, borrows, why, short)


def _may_preempt_while_borrowing(queue: Object) -> bool:
    policy = part(part(queue, "spec"), "preemption")
    return bool(part(policy, "borrowWithinCohort").get("policy", "Never") != "Never")
