"""Profiles as a hub starts servers of them in one namespace: whose they are, on which nodes, in which queue. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from notebooks.profiles.document import VALUE, Document, FreeChoice, Option
from notebooks.profiles.kubespawner import Json, in_order, plain_profile_of
from notebooks.profiles.patterns import guarded
from notebooks.profiles.publishing import most_gpus
from provisioning.desired.first_job import QUEUE, QUEUE_LABEL, Kind
from provisioning.desired.objects import cost_labels
from ui.amounts import listed


@dataclass(frozen=True, kw_only=True)
class Place:
    """A team's namespace: its cluster, what cost is put under, and of each flavor held the nodes and the GPUs at most.

    `images` are the beginnings of allowed images, none for any.
    """

    namespace: str
    cluster: str
    cluster_title: str
    team: str
    project: str
    cost_centre: str
    environment: str
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    gpus: Mapping[str, int] = field(default_factory=dict)
    images: Sequence[str] = ()


def refused_here(document: Document, place: Place) -> str:
    """Why nobody of this namespace may choose a profile, whatever the team holds; empty when they may."""
    if document.teams and place.team not in document.teams:
        return "This profile is not for your team."
    if document.environments and place.environment not in document.environments:
        return f"This profile is for {listed(document.environments)}; this namespace is {place.environment}."
    if document.clusters and place.cluster not in document.clusters:
        return f"This profile is not offered on {place.cluster_title}."
    return ""


def profile_list(documents: Iterable[Document], place: Place) -> list[Json]:
    """What KubeSpawner gets for a namespace: the profiles that people may choose there and hold enough GPUs for."""
    open_here = [one for one in in_order([*documents]) if not refused_here(one, place)]
    fitting = [found for one in open_here if (found := _fitted(one, place)) is not None]
    return [_with_place(one, place) for one in fitting]


def spawned_as(profile: str, namespace: str) -> str:
    """What a hub calls a profile in a namespace, of which a person may have several."""
    return f"{profile}--{namespace}"


def _fitted(document: Document, place: Place) -> Document | None:
    """The profile without the choices that take more GPUs than there can be; None where nothing of it is left."""
    if not most_gpus(document):
        return document
    most = place.gpus.get(document.flavor, 0)
    options: dict[str, Option] = {}
    for name, option in document.options.items():
        choices = {
            key: one for key, one in option.choices.items() if (one.gpus or 0) <= most
        }
        free = (
            option.free
            if option.free is None or (option.free.gpus or 0) <= most
            else None
        )
        if not choices and free is None:
            return None
        options[name] = replace(option, choices=choices, free=free)
    own = document.gpus or 0
    is_set_by_choice = any(
        option.choices
        and option.free is None
        and all(one.gpus is not None for one in option.choices.values())
        for option in options.values()
    )
    return (
        replace(document, options=options) if own <= most or is_set_by_choice else None
    )


def _with_place(document: Document, place: Place) -> Json:
    options = {
        name: replace(option, free=_checked(option.free, place))
        for name, option in document.options.items()
    }
    profile = plain_profile_of(replace(document, options=options))
    override: Json = profile.get("kubespawner_override", {})
    kind = place.kinds.get(document.flavor) if most_gpus(document) else None
    labels = cost_labels(
        team=place.team,
        project=place.project,
        cost_centre=place.cost_centre,
        environment=place.environment,
        profile=document.slug,
    )
    return {
        **profile,
        "kubespawner_override": {
            **override,
            "namespace": place.namespace,
            "extra_labels": {
                **override.get("extra_labels", {}),
                **labels,
                QUEUE_LABEL: QUEUE,
            },
            **(_on_nodes(override, kind) if kind else {}),
        },
    }


def _on_nodes(override: Mapping[str, Any], kind: Kind) -> Json:
    """What brings a server onto the nodes of its flavor, beside what the profile says itself."""
    tolerated = override.get("tolerations", [])
    others = (
        list(tolerated.values()) if isinstance(tolerated, Mapping) else list(tolerated)
    )
    found: Json = {
        "node_selector": {**override.get("node_selector", {}), **kind.node_labels}
    }
    if others or kind.taints:
        found["tolerations"] = [
            *others,
            *(one for one in kind.tolerations if one not in others),
        ]
    return found


def _checked(free: FreeChoice | None, place: Place) -> FreeChoice | None:
    """A free choice whose pattern answers at once, and lets through images that are allowed alone."""
    if free is None:
        return None
    is_whole_image = free.image.startswith(VALUE)
    beginnings = tuple(place.images) if is_whole_image else ()
    return replace(free, pattern=guarded(free.pattern, beginnings=beginnings))
