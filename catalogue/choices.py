"""What may be chosen in an offering's spec for a team: only what is possible, with its price, in few queries."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, When

from accounts.models import Team
from accounts.teams import Project
from capacity.connection import is_connected
from capacity.openai import quotas
from capacity.prices.shipped import VM_GPUS
from capacity.reservations.asking import reservable_sizes
from catalogue.azure import REGIONS
from catalogue.models import OfferingSetting
from catalogue.namespace import ENVIRONMENTS, NamespaceSpec
from catalogue.offering import Offering
from catalogue.pricing import Lowest, listed_prices, lowest
from catalogue.reservation import ReservationSpec
from fleet.models import Cluster, Flavor
from notebooks.profile_desk.kept import offered
from notebooks.profiles.kubespawner import in_order
from notebooks.profiles.publishing import most_gpus
from provisioning.desired.isolation import flavors_of_team
from provisioning.models import Tenancy
from provisioning.stages import Stage
from ui.amounts import rate

# What a fixed word of a spec is called; the rest is written as it is.
WORDS = {
    **ENVIRONMENTS,
    "ReadWriteOnce": "One node at a time",
    "ReadWriteMany": "Many nodes at once",
    "training": "Training",
    "inference": "Inference",
    "development": "Development",
    "notebook": "Notebook",
    "other": "Something else",
    "Standard": "Standard: answers come from its region",
    "GlobalStandard": "Global Standard: answers come from any region of Azure",
}
ZONES = {"": "Wherever Azure has it", "1": "Zone 1", "2": "Zone 2", "3": "Zone 3"}
NO_NODES = "No nodes: the capacity alone"


@dataclass(frozen=True)
class Choice:
    """One line of a drop-down; `reason` says why it cannot be chosen now, "" when it can.

    Where lines are shown in groups, `short` is the label within its `group`. `takes` names the only flavor that it
    goes with.
    """

    value: str
    label: str
    reason: str = ""
    group: str = ""
    short: str = ""
    takes: str = ""


def choices_of(
    offering: Offering, setting: OfferingSetting, *, team: Team | None
) -> dict[str, list[Choice]]:
    """The lines of every field that is chosen from a list, by field; empty lists where there is no team yet."""
    prices = lowest(offering, setting, listed_prices() if offering.is_listed else ())
    found: dict[str, list[Choice]] = {}
    for name, schema in fields_of(offering).items():
        if name == "zone":
            found[name] = [Choice(zone, words) for zone, words in ZONES.items()]
        elif "enum" in schema:
            found[name] = [
                Choice(word, _worded(word, prices, offering))
                for word in schema["enum"]
                if name != "access" or word in prices
            ]
        elif listed := schema.get("list"):
            found[name] = _lines(str(listed), offering, prices, team)
    return found


def fields_of(offering: Offering) -> Mapping[str, Mapping[str, Any]]:
    """The fields that are asked for, in order, as JSON Schema; what can only be one word is not asked."""
    properties: dict[str, dict[str, Any]] = offering.spec.model_json_schema()[
        "properties"
    ]
    return {
        name: schema for name, schema in properties.items() if "const" not in schema
    }


def depends_on_team(schema: Mapping[str, Any]) -> bool:
    """Whether what may be chosen is another for another team."""
    return schema.get("list") in ("flavors", "clusters", "azure_flavors")


def is_suggested(schema: Mapping[str, Any]) -> bool:
    """Whether its list only suggests: another project is asked for by writing its name."""
    return schema.get("list") == "projects"


def _lines(
    listed: str, offering: Offering, prices: Mapping[str, Lowest], team: Team | None
) -> list[Choice]:
    if listed == "models":
        return _models(prices, offering)
    if listed == "vm_sizes":
        named = _possible(prices, offering)
        return [
            Choice(name, _priced(name, prices[name], offering))
            for name in sorted(named)
        ]
    if listed == "regions":
        ours = set(
            Cluster.objects.filter(enabled=True).values_list("region", flat=True)
        )
        return [
            Choice(name, f"{name} · with a cluster of ours" if name in ours else name)
            for name in sorted(
                {*REGIONS, *ours}, key=lambda name: (name not in ours, name)
            )
        ]
    if listed == "azure_flavors":
        return azure_flavors_of(team)
    if team is None:
        return []
    if listed == "projects":
        return [
            Choice(slug, slug)
            for slug in Project.objects.filter(team=team).values_list("slug", flat=True)
        ]
    if listed == "profiles":
        return profiles_of()
    return flavors_of(team) if listed == "flavors" else clusters_of(team, offering)


def _models(prices: Mapping[str, Lowest], offering: Offering) -> list[Choice]:
    """The models that have a price, each with what is left of its quota where that was read."""
    offers = quotas.offers() if is_connected() else {}
    return [
        Choice(
            name,
            " · ".join(
                [
                    _priced(name, price, offering),
                    *quotas.left_words(offers.get(name, ())),
                ]
            ),
        )
        for name, price in sorted(prices.items())
    ]


def _possible(prices: Mapping[str, Lowest], offering: Offering) -> Collection[str]:
    """What has a price, and of sizes to reserve only what Azure reserves, as far as that was read."""
    known = reservable_sizes() if offering.spec is ReservationSpec else frozenset()
    return [name for name in prices if name in known] if known else prices.keys()


def flavors_of(team: Team) -> list[Choice]:
    """The kinds of GPU on the team's clusters."""
    rows = (
        flavors_of_team(team).select_related("cluster").filter(cluster__in=_here(team))
    )
    # What is taken back under those who use it is nobody's first choice by itself.
    is_spot = Case(When(capacity_type=Flavor.Capacity.SPOT, then=1), default=0)
    return [
        _flavor_line(row)
        for row in rows.order_by("cluster__name", is_spot, "price_per_gpu_hour", "name")
    ]


def azure_flavors_of(team: Team | None) -> list[Choice]:
    """The kinds of GPU for which nodes can be made of reserved capacity, and none of them."""
    none = Choice("", NO_NODES)
    if team is None or not is_connected():
        return [none]
    rows = flavors_of_team(team).select_related("cluster").exclude(cluster__azure_id="")
    spot = Flavor.Capacity.SPOT
    kinds = rows.exclude(capacity_type=spot).order_by(
        "cluster__name", "price_per_gpu_hour", "name"
    )
    return [
        none,
        *(Choice(row.key, f"{row.words} · {row.cluster.title}") for row in kinds),
    ]


def _flavor_line(row: Flavor) -> Choice:
    figures = f"{rate(row.price_per_gpu_hour)} per GPU-hour · {row.free_words}"
    return Choice(
        row.key,
        f"{row.words} · {row.cluster.title} · {figures}",
        ""
        if row.is_offered and row.cluster.enabled
        else "This kind of GPU is not offered now.",
        group=row.cluster.title,
        short=f"{row.words} · {figures}",
    )


def profiles_of() -> list[Choice]:
    """The profiles of notebooks that take GPUs, with the kind that each takes."""
    found = in_order([one.document for one in offered() if most_gpus(one.document)])
    kinds = Flavor.objects.filter(name__in={one.flavor for one in found}).kinds()
    return [
        Choice(
            one.slug,
            f"{one.title} · {kinds.get(one.flavor, one.flavor)}",
            takes=one.flavor,
        )
        for one in found
    ]


def clusters_of(team: Team, offering: Offering) -> list[Choice]:
    """The clusters where the team is; for a namespace those that take it, where it may have others already."""
    rows = (
        Tenancy.objects.present()
        .filter(team=team)
        .order_by()
        .values_list("cluster_id", "stage")
    )
    stages: dict[int, set[str]] = {}
    for cluster_id, stage in rows:
        stages.setdefault(cluster_id, set()).add(stage)
    is_new = offering.spec is NamespaceSpec
    lines = []
    for row in Cluster.objects.not_of_others(team).order_by("name"):
        reason = "" if row.enabled else "It takes no teams now."
        if not is_new and row.pk not in stages:
            reason = f"{team.name} is not there."
        if row.pk in stages and Stage.HERE not in stages[row.pk]:
            reason = f"{team.name} is leaving it."
        lines.append(Choice(row.name, f"{row.title} · {row.region}", reason))
    return lines


def _here(team: Team) -> Any:
    """The clusters where the team works, as a subquery."""
    return Tenancy.objects.here().filter(team=team).order_by().values("cluster")


def _worded(word: str, prices: Mapping[str, Lowest], offering: Offering) -> str:
    said = WORDS.get(word, word)
    return (
        f"{said} · {rate(prices[word].usd)} per {offering.priced}"
        if word in prices
        else said
    )


def _priced(name: str, price: Lowest, offering: Offering) -> str:
    gpus = (
        f" · {VM_GPUS[name]} GPU{'s' if VM_GPUS[name] > 1 else ''}"
        if name in VM_GPUS
        else ""
    )
    least = "from " if price.differs else ""
    return f"{name}{gpus} · {least}{rate(price.usd)} per {offering.priced}"
