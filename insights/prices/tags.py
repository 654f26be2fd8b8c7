"""What the forms of the fleet say about Azure's list."""

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from capacity.prices.listed import list_prices
from fleet.models import Flavor
from ui.amounts import dated, rate

register = template.Library()
WORDS = {"on_demand": "on demand", "spot": "spot", "one_year": "reserved for a year"}


@register.simple_tag
def list_price(flavor: Flavor | None) -> str:
    """What a GPU of a kind costs by Azure's list, with the day of it; nothing where that is not known."""
    if flavor is None or flavor.pk is None:
        return ""
    listed = list_prices([flavor]).get(flavor)
    if listed is None:
        return ""
    prices = [
        f"{rate(usd)} {words}"
        for way, words in WORDS.items()
        if (usd := getattr(listed, way)) is not None
    ]
    return _note(
        f"Azure's list price of {dated(listed.seen_at)} per GPU-hour: {', '.join(prices)}.",
        reverse("price", args=[listed.price_id]),
        listed.size,
    )


def _note(sentence: str, href: str, size: str) -> SafeString:
    return format_html(
        '<p class="note">{} <a class="link" href="{}">{}</a></p>', sentence, href, size
    )
