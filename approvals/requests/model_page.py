"""The model that was granted on a request, as its page shows it: where it is, who may call it, and how."""

from collections.abc import Sequence
from typing import TypedDict

from django.urls import reverse

from accounts.models import User
from accounts.roles import Permission
from allocations.models import Allocation
from capacity.models import ModelEndpoint
from capacity.openai.calling import callers_words, example, network_words
from capacity.openai.states import State
from ui.parts import Fact


class ModelShown(TypedDict):
    """A model that was granted: where it is, what is wrong with it, who may call it, and how."""

    rows: list[Fact]
    message: str
    who: str
    network: str
    example: str
    retry: str


def _state(endpoint: ModelEndpoint) -> Fact:
    tone, word = endpoint.state_of.tone, endpoint.state_of.words
    if endpoint.is_refused:
        tone, word = "bad", "Refused"
    elif endpoint.state == State.READY and not endpoint.held:
        tone, word = "moving", "Being made again"
    return {"label": "State", "tone": tone, "word": word}


def of_allocations(
    allocations: Sequence[Allocation], *, viewer: User
) -> ModelShown | None:
    """What the page says of a model that is held; None for anything else. Reads what the rows point at.

    Who may have it tried again sees one, too, that has ended and that Azure does not let go. `retry` is where they do.
    """
    may_retry = viewer.may(Permission.MANAGE_CLUSTERS)
    endpoint = next(
        (
            one.endpoint
            for one in allocations
            if one.endpoint is not None
            and (one.ended_at is None or (may_retry and _is_kept(one.endpoint)))
        ),
        None,
    )
    return None if endpoint is None else _shown(endpoint, may_retry=may_retry)


def _is_kept(endpoint: ModelEndpoint) -> bool:
    """Whether Azure keeps what nobody wants any more."""
    return endpoint.state == State.DELETING and _is_stuck(endpoint)


def _is_stuck(endpoint: ModelEndpoint) -> bool:
    """Whether a try by hand may help: it is parked, refused, or something keeps it from being what is wanted."""
    account = endpoint.account
    return (
        account.parked_at is not None
        or endpoint.is_refused
        or (bool(_met(endpoint)) and account.operation is None)
    )


def _met(endpoint: ModelEndpoint) -> str:
    """What a worker met; nothing of what another model of the account meets, where this one is as wanted."""
    account = endpoint.account
    return account.message if account.parked_at or not endpoint.is_true else ""


def _shown(endpoint: ModelEndpoint, *, may_retry: bool) -> ModelShown:
    account, team = endpoint.account, endpoint.team
    tokens = f"{endpoint.capacity:,} thousand a minute"
    if endpoint.held != endpoint.capacity and endpoint.held:
        tokens = f"{endpoint.held:,} thousand a minute now, soon {endpoint.capacity:,}"
    rows: list[Fact] = [
        _state(endpoint),
        {"label": "Model", "text": f"{endpoint.model} {endpoint.version}".strip()},
        {"label": "Deployment", "copyable": endpoint.deployment},
        {"label": "Type", "text": f"{endpoint.get_sku_display()}, {account.region}"},
        {"label": "Tokens", "text": tokens},
        {"label": "Called by", "text": team.entra_group_name},
    ]
    if account.endpoint:
        rows.insert(1, {"label": "Address", "copyable": account.endpoint})
    return {
        "rows": rows,
        "retry": reverse("model-endpoint-retry", args=[endpoint.pk])
        if may_retry and _is_stuck(endpoint)
        else "",
        "message": _met(endpoint) or endpoint.refusal,
        "who": callers_words(endpoint),
        "network": network_words(endpoint),
        "example": example(endpoint),
    }
