"""Which models a region offers, and what is left of their quota, as it was read last."""

from collections.abc import Iterable

from capacity.connection import home_subscription
from capacity.openai.models import ModelQuota
from capacity.openai.naming import STANDARD
from web.refusals import BadInput, Conflict


def offer_in(region: str, model: str, sku: str) -> ModelQuota | None:
    """A model as a region offers it in one way; None where it was not read, or offers none."""
    return ModelQuota.objects.filter(
        subscription=home_subscription(), region=region, model=model, sku=sku
    ).first()


def offers() -> dict[str, list[ModelQuota]]:
    """What every region that was read offers, by model; one query."""
    found: dict[str, list[ModelQuota]] = {}
    for row in ModelQuota.objects.filter(subscription=home_subscription()):
        found.setdefault(row.model, []).append(row)
    return found


def check(region: str, model: str, sku: str, capacity: int) -> None:
    """Refuse what Azure would: a model that the region does not offer so, more than is left of its quota.

    Says nothing about a region that was not read. Raises BadInput and Conflict naming the field.
    """
    offer = offer_in(region, model, sku)
    if offer is None:
        _check_offered(region, model, sku)
        return
    if capacity > offer.left:
        raise Conflict(
            f"{offer.sentence} for {words_of(model, sku)}: ask for {offer.left:,} or fewer, or another region."
            if offer.left
            else f"Nothing of the quota for {words_of(model, sku)} is left in {region}. Choose another region, or ask "
            "platform leads for more quota.",
            code="not_enough_quota",
            field="thousand_tokens_per_minute",
        )


def left_words(offers: Iterable[ModelQuota]) -> list[str]:
    """What is left of a model, region by region: "420 of 450k left in eastus"."""
    return [
        f"{one.left:,} of {one.limit:,}k left in {one.region}{' (Global Standard)' if one.sku != STANDARD else ''}"
        for one in offers
    ]


def words_of(model: str, sku: str) -> str:
    """ "gpt-4o", or "gpt-4o as Global Standard"."""
    return model if sku == STANDARD else f"{model} as Global Standard"


def _check_offered(region: str, model: str, sku: str) -> None:
    here = ModelQuota.objects.filter(subscription=home_subscription(), region=region)
    if not here.exists():
        return
    if here.filter(model=model).exists():
        raise BadInput(
            f"{region} does not offer {words_of(model, sku)}. Choose the other type of deployment.",
            code="no_such_model",
            field="deployment_type",
        )
    others = sorted({row.region for row in offers().get(model, ())})
    where = f" It is offered in {', '.join(others)}." if others else ""
    raise BadInput(
        f"{region} does not offer {model}.{where}", code="no_such_model", field="model"
    )
