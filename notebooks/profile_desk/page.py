"""What the pages of profiles show."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

import yaml
from django.urls import reverse

from fleet.models import Flavor
from notebooks.places import flavors_on, place_of
from notebooks.profile_desk.kept import Kept
from notebooks.profiles.document import Document
from notebooks.profiles.kubespawner import LIST, in_order
from notebooks.profiles.pricing import price_words, size_words
from notebooks.profiles.spawning import profile_list, refused_here
from notebooks.profiles.states import State
from provisioning.models import Tenancy
from ui.parts import Badge, Row

COLUMNS = ["Profile", "State", "A server", "Price", "Last changed"]
HISTORY = ["Version", "What", "By", "When", "Why"]
# As many namespaces as a list that people read has.
MAX_PLACES = 200


@dataclass(frozen=True, kw_only=True)
class Preview:
    """What KubeSpawner gets of a profile in a namespace, or why it gets nothing."""

    refused: str = ""
    yaml: str = ""


def prices_of(names: Collection[str]) -> Mapping[str, list[Decimal]]:
    """What a GPU-hour of flavors costs on each cluster that has them; one query."""
    found: dict[str, list[Decimal]] = defaultdict(list)
    rows = (
        Flavor.objects.offered()
        .filter(name__in=names)
        .values_list("name", "price_per_gpu_hour")
    )
    for name, price in rows:
        found[name].append(price)
    return found


def rows_of(kept: Iterable[Kept]) -> list[Row]:
    """The list in the order of the cards, with what is retired last."""
    found = [(one, one.document) for one in kept]
    prices = prices_of({document.flavor for _, document in found if document})
    documents = in_order([document for _, document in found if document is not None])
    position = {document.slug: number for number, document in enumerate(documents)}
    ordered = sorted(
        found,
        key=lambda pair: (
            pair[0].state is State.RETIRED,
            position.get(pair[0].slug, -1),
        ),
    )
    return [_row(one, document, prices) for one, document in ordered]


def badge_of(kept: Kept) -> Badge:
    """A profile's state as a badge."""
    return {"tone": kept.state.tone, "word": kept.state.words}


def history_of(kept: Kept) -> list[Row]:
    """Its versions, the newest first."""
    address = reverse("profile", args=[kept.slug])
    return [
        {
            "cells": [
                {"text": str(one.number), "href": f"{address}?version={one.number}"},
                _what_of(kept, one.number),
                one.by.name,
                one.at,
                one.why or "–",
            ]
        }
        for one in kept.versions
    ]


def tenancies_to_preview() -> list[Tenancy]:
    """The namespaces of all teams, as far as a list goes."""
    rows = Tenancy.objects.here().select_related("team", "project", "cluster")
    return list(rows.order_by("team__name", "namespace")[:MAX_PLACES])


def preview_of(document: Document, tenancy: Tenancy) -> Preview:
    """What KubeSpawner gets of a profile in a namespace: YAML, or why it gets nothing."""
    place = place_of(tenancy, flavors_on(tenancy.cluster_id))
    if refused := refused_here(document, place):
        return Preview(refused=refused)
    found = profile_list([document], place)
    if not found:
        return Preview(
            refused="The team holds fewer GPUs there than the smallest server takes."
        )
    text = yaml.safe_dump({LIST: found}, sort_keys=False, allow_unicode=True, width=100)
    return Preview(yaml=text)


def _row(
    kept: Kept, document: Document | None, prices: Mapping[str, Collection[Decimal]]
) -> Row:
    draft = (
        f"version {kept.number} is a draft" if kept.published and kept.has_draft else ""
    )
    return {
        "cells": [
            {
                "text": kept.newest.title,
                "href": reverse("profile", args=[kept.slug]),
                "sub": " · ".join(filter(None, [kept.slug, draft])),
            },
            badge_of(kept) if document else {"tone": "bad", "word": "Needs a change"},
            size_words(document) if document else "–",
            price_words(document, prices.get(document.flavor, [])) if document else "–",
            kept.newest.at,
        ]
    }


def _what_of(kept: Kept, number: int) -> str:
    if number == kept.profile.published:
        return (
            "What people get" if kept.state is not State.RETIRED else "What people got"
        )
    return "Draft" if number > (kept.profile.published or 0) else "Before"
