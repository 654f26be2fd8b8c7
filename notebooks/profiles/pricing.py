"""What a server of a profile costs and what it is made of, in a few words. Pure."""

from collections.abc import Collection
from decimal import Decimal

from notebooks.profiles.document import Document, settings_of, usual
from ui.amounts import gpus, rate


def hourly(document: Document, price: Decimal) -> tuple[Decimal, Decimal]:
    """USD an hour of its smallest and its largest server, at a price of one GPU for an hour."""
    counts = [one.gpus for _, one in settings_of(document) if one.gpus is not None] or [
        0
    ]
    return min(counts) * price, max(counts) * price


def price_words(document: Document, prices: Collection[Decimal]) -> str:
    """ "$3.67 an hour", "$1.20 to $9.60 an hour", "costs nothing"; `prices` are its flavor's per GPU-hour, anywhere."""
    counts = [amount for price in prices for amount in hourly(document, price)]
    if not any(one.gpus for _, one in settings_of(document)):
        return "costs nothing"
    if not counts:
        return "no price yet"
    least, most = min(counts), max(counts)
    return (
        f"{rate(least)} an hour"
        if least == most
        else f"{rate(least)} to {rate(most)} an hour"
    )


def size_words(document: Document, product: str = "GPU") -> str:
    """ "1 × A100 · 8 CPU · 64 GiB", as it is where nobody chose anything."""
    count, cpus, memory = (usual(document, name) for name in ("gpus", "cpus", "memory"))
    parts = [
        gpus(count, product) if count else "",
        f"{cpus:g} CPU" if cpus else "",
        f"{memory:,} GiB" if memory else "",
    ]
    return " · ".join(filter(None, parts)) or "–"
