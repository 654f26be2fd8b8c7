"""What a node says of its versions: what the kubelet reports, and the labels of GPU Feature Discovery. Pure.

Nodes are taken as they come: whoever may label one writes what they like there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypedDict

LONGEST = 80
# Of a driver or CUDA: 550.144.03 is a long one.
LONGEST_LABELLED = 20
# Of a component; nodes with any other version count among the nodes alone.
MAX_VERSIONS = 8
FULL, OLD = "nvidia.com/cuda.{}-version.{}", "nvidia.com/cuda.{}.{}"


class Component(StrEnum):
    """What a node has a version of, as the API names it."""

    KUBELET = "kubelet"
    DRIVER = "driver"
    # The newest CUDA that the driver can run: what GPU Feature Discovery calls the CUDA runtime's version.
    CUDA = "cuda"
    RUNTIME = "runtime"
    OS = "os"
    KERNEL = "kernel"
    PRODUCT = "product"


class Count(TypedDict):
    """How many nodes have a version; an empty one is that of nodes that do not say."""

    version: str
    nodes: int


class Versions(TypedDict):
    """What nodes of one kind run: of each component the versions, that of most nodes first."""

    nodes: int
    kubelet: list[Count]
    driver: list[Count]
    cuda: list[Count]
    runtime: list[Count]
    os: list[Count]
    kernel: list[Count]
    product: list[Count]


def versions_of(nodes: Sequence[Mapping[str, Any]]) -> Versions:
    """The versions of nodes of one kind, counted."""
    found = [_of_node(node) for node in nodes]

    def counted(component: Component) -> list[Count]:
        return _counted(one[component] for one in found)

    return {
        "nodes": len(found),
        "kubelet": counted(Component.KUBELET),
        "driver": counted(Component.DRIVER),
        "cuda": counted(Component.CUDA),
        "runtime": counted(Component.RUNTIME),
        "os": counted(Component.OS),
        "kernel": counted(Component.KERNEL),
        "product": counted(Component.PRODUCT),
    }


def _counted(versions: Iterable[str]) -> list[Count]:
    ordered = sorted(Counter(versions).items(), key=lambda one: (-one[1], one[0]))
    return [{"version": name, "nodes": nodes} for name, nodes in ordered[:MAX_VERSIONS]]


def _of_node(node: Mapping[str, Any]) -> Mapping[Component, str]:
    labels = _mapping(_mapping(node.get("metadata")).get("labels"))
    info = _mapping(_mapping(node.get("status")).get("nodeInfo"))
    return {
        Component.KUBELET: _clean(info.get("kubeletVersion")),
        Component.DRIVER: _labelled(labels, "driver", ("revision", "rev")),
        Component.CUDA: _labelled(labels, "runtime"),
        # As "containerd://2.1.0".
        Component.RUNTIME: _clean(info.get("containerRuntimeVersion")).replace(
            "://", " ", 1
        ),
        Component.OS: _clean(info.get("osImage")),
        Component.KERNEL: _clean(info.get("kernelVersion")),
        Component.PRODUCT: _clean(labels.get("nvidia.com/gpu.product")),
    }


def _labelled(
    labels: Mapping[str, Any], what: str, third: tuple[str, str] | None = None
) -> str:
    """A version by its label, or by those of its parts, which older releases write; `third` is what each calls it."""
    if full := _clean(labels.get(FULL.format(what, "full"))):
        return full[:LONGEST_LABELLED]
    for form, last in zip((FULL, OLD), third or ("", ""), strict=True):
        parts = [
            _clean(labels.get(form.format(what, name)))
            for name in ("major", "minor", *([last] if last else []))
        ]
        if parts[0]:
            # Nothing behind a part that is missing: 570..15 is no version.
            known = parts.index("") if "" in parts else len(parts)
            return ".".join(parts[:known])[:LONGEST_LABELLED]
    return ""


def _clean(value: object) -> str:
    """A text in one line, without what cannot be printed or turns the direction of writing; empty for anything else."""
    if not isinstance(value, str):
        return ""
    shown = "".join(each if each.isprintable() else " " for each in value)
    return " ".join(shown.split())[:LONGEST].strip()


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
