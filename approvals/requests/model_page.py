"""The model that was granted on a request, as its page shows it: where it is, who may call it, and how."""

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


def of_allocation(allocation: Allocation | None, *, viewer: User) -> ModelShown | None:
    """What the page says of a model that is granted; None for anything else. Reads what the row points at.

    `retry` is where a platform lead has an account tried again that is tried no more, or what Azure refused.
    """
    endpoint = allocation.endpoint if allocation is not None else None
    if endpoint is None:
        return None
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
    is_stuck = account.parked_at is not None or endpoint.is_refused
    may_retry = is_stuck and viewer.may(Permission.MANAGE_CLUSTERS)
    # Of what another model of the account meets, nothing is said where this one is as wanted.
    met = account.message if account.parked_at or not endpoint.is_true else ""
    return {
        "rows": rows,
        "retry": reverse("model-endpoint-retry", args=[endpoint.pk])
        if may_retry
        else "",
        "message": met or endpoint.refusal,
        "who": callers_words(endpoint),
        "network": network_words(endpoint),
        "example": example(endpoint),
    }
