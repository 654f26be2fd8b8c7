"""What a profile has to say before people can choose it, beside what platform leads may write down for later. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleet.images import refused_image
from notebooks.profiles.document import (
    VALUE,
    Document,
    FreeChoice,
    Settings,
    at,
    settings_of,
    usual,
)
from notebooks.profiles.kubespawner import HAS_WORDS_FOR
from notebooks.profiles.patterns import refused_open_end
from provisioning.desired.first_job import QUEUE_LABEL
from provisioning.desired.objects import DOMAIN
from provisioning.desired.spec import GPU

# What follows from the team's namespace, whoever wrote the profile.
FROM_THE_NAMESPACE = ("namespace", "user_namespace_template", "enable_user_namespaces")
# What people read on a profile, and pay.
CHARGED = frozenset({"image", "cpus", "memory", "gpus"})
GPU_VENDOR = GPU.partition("/")[0] + "/"
OUR_LABELS = (f"{DOMAIN}/", QUEUE_LABEL.partition("/")[0] + "/")


@dataclass(frozen=True)
class Capacity:
    """A flavor on one cluster: what nodes count its GPUs as, and how many a node has."""

    cluster: str
    resource: str
    per_node: int


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """What profiles can name: teams, clusters, flavors by name, and the beginnings of allowed images, none for any."""

    teams: Collection[str]
    clusters: Collection[str]
    flavors: Mapping[str, Sequence[Capacity]]
    images: Sequence[str] = ()


def problems_of(document: Document, fleet: Fleet) -> list[tuple[str, str]]:
    """Everything that keeps people from choosing a profile, with its place in the document."""
    found = [
        *_missing(document),
        *_unknown(document, fleet),
        *_of_gpus(document, fleet),
    ]
    for place, settings in settings_of(document):
        found += [
            *_overridden(place, settings),
            *_of_image(place, settings, fleet.images),
        ]
    return found


def most_gpus(document: Document) -> int:
    """The GPUs of its largest server."""
    return max(one.gpus or 0 for _, one in settings_of(document))


def _missing(document: Document) -> Iterator[tuple[str, str]]:
    for name, what in (
        ("image", "Name the image, or let an option have a choice of one."),
        ("cpus", "Say how many CPUs a server gets."),
        ("memory", "Say how many GiB of memory a server gets."),
    ):
        if usual(document, name) in (None, ""):
            yield name, what


def _unknown(document: Document, fleet: Fleet) -> Iterator[tuple[str, str]]:
    for name, known in (("teams", fleet.teams), ("clusters", fleet.clusters)):
        for number, value in enumerate(getattr(document, name)):
            if value not in known:
                yield f"{name}.{number}", f"There is no “{value}”."


def _of_gpus(document: Document, fleet: Fleet) -> Iterator[tuple[str, str]]:
    gpus = most_gpus(document)
    if not gpus:
        if document.flavor:
            yield "flavor", "A profile without GPUs has no flavor."
        return
    if not document.flavor:
        yield "flavor", "Name the flavor that its GPUs are of."
        return
    everywhere = fleet.flavors.get(document.flavor, ())
    there = [
        one
        for one in everywhere
        if not document.clusters or one.cluster in document.clusters
    ]
    if not there:
        yield "flavor", f"No cluster of the profile has a flavor {document.flavor}."
        return
    counted = sorted({one.resource for one in there})
    if document.resource not in counted:
        yield "resource", f"Nodes count {document.flavor} as {' or '.join(counted)}."
    elif gpus > (most := max(one.per_node for one in there)):
        yield "gpus", f"A node has {most}, and a server runs on one."


def _overridden(place: str, settings: Settings) -> Iterator[tuple[str, str]]:
    """Settings of KubeSpawner that would make a server get, cost or reach something else than people read."""
    for name in settings.overrides:
        word = HAS_WORDS_FOR.get(name, "")
        if word in CHARGED:
            yield (
                at(place, f"overrides.{name}"),
                f"Write {word}: what people read and pay is what a server gets.",
            )
        elif word and getattr(settings, word):
            yield (
                at(place, f"overrides.{name}"),
                f"Write all of it in {word}, or all of it here.",
            )
        elif name in FROM_THE_NAMESPACE:
            yield (
                at(place, f"overrides.{name}"),
                "This follows from the team's namespace.",
            )
    for found in _gpus_within(at(place, "overrides"), settings.overrides):
        yield found, "Write gpus: what people read and pay is what a server gets."
    labels = settings.overrides.get("extra_labels")
    for name in labels if isinstance(labels, Mapping) else ():
        if name.startswith(OUR_LABELS):
            yield (
                at(place, f"overrides.extra_labels.{name}"),
                "The portal sets this label.",
            )


def _gpus_within(place: str, value: Any) -> Iterator[str]:
    """Where containers and pods that are passed on as they are ask for GPUs of their own."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            inner = at(place, name)
            if name.startswith(GPU_VENDOR) and place.endswith((".requests", ".limits")):
                yield inner
            yield from _gpus_within(inner, one)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _gpus_within(at(place, str(number)), one)


def _of_image(
    place: str, settings: Settings, allowed: Sequence[str]
) -> Iterator[tuple[str, str]]:
    if isinstance(settings, FreeChoice):
        yield from _of_free_choice(place, settings, allowed)
    elif refused := refused_image(settings.image or None, allowed):
        yield at(place, "image"), refused


def _of_free_choice(
    place: str, free: FreeChoice, allowed: Sequence[str]
) -> Iterator[tuple[str, str]]:
    if not free.pattern:
        yield (
            at(place, "pattern"),
            "Say what may be written: a pattern that ends with $.",
        )
    elif refused := refused_open_end(free.pattern):
        yield at(place, "pattern"), refused
    # Before the value stands what every image begins with; without it, the value itself is held to that.
    start = free.image.partition(VALUE)[0]
    if start and (refused := refused_image(start, allowed)):
        yield at(place, "image"), refused
