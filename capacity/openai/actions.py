"""What changes about models: what was granted adds up to a capacity, and what Azure says of it is kept."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from accounts.models import Team, User
from audit.actors import PORTAL, Actor
from audit.events import Kind
from audit.log import record
from capacity.openai import notices
from capacity.openai.enqueue import enqueue_on_commit
from capacity.openai.models import ModelAccount, ModelEndpoint
from capacity.openai.states import State
from capacity.retrying import require_lead, retry_now
from web.refusals import Conflict

NOT_REFUSED = {"refusal": "", "refused_capacity": None}


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a model is deployed, which one and how."""

    subscription: str
    resource_group: str
    region: str
    model: str
    sku: str


def locked(endpoint_id: int) -> ModelEndpoint:
    """A model endpoint with its account, both locked: after budgets, before the audit chain; accounts first."""
    account_id = ModelEndpoint.objects.values_list("account", flat=True).get(
        pk=endpoint_id
    )
    account = locked_account(account_id)
    row = ModelEndpoint.objects.select_for_update(of=("self",), no_key=True).get(
        pk=endpoint_id
    )
    row.account, row.team = account, account.team
    return row


def locked_account(account_id: int) -> ModelAccount:
    """An account, locked."""
    rows = ModelAccount.objects.select_for_update(
        of=("self",), no_key=True
    ).select_related("team")
    return rows.get(pk=account_id)


def of_place(
    team: Team, place: Place, *, capacity: int, now: datetime
) -> ModelEndpoint:
    """The model endpoint that what was granted belongs to, locked: the team's own there, or a new one of a capacity.

    The caller holds a lock that keeps the same team from having it made twice, such as those of its budgets; whoever
    has none is refused by the database.
    """
    account = _account_of(team, place, now=now)
    same = ModelEndpoint.objects.wanted_now().filter(
        account=account, model=place.model, sku=place.sku
    )
    found = same.values_list("pk", flat=True).first()
    if found is not None:
        return locked(found)
    made = ModelEndpoint.objects.create(
        team=team,
        account=account,
        model=place.model,
        sku=place.sku,
        capacity=capacity,
        created_at=now,
    )
    _wanted_anew(account, now=now)
    made.account, made.team = account, team
    return made


def want(
    endpoint: ModelEndpoint, capacity: int, *, actor: Actor, now: datetime
) -> None:
    """Have a locked model endpoint take so many thousand tokens a minute; 0 has it deleted. What is deleted stays so.

    With its last model the account goes.
    """
    if (
        endpoint.state not in (State.PENDING, State.READY)
        or endpoint.capacity == capacity
    ):
        return
    before, endpoint.capacity = endpoint.capacity, capacity
    endpoint.refusal, endpoint.refused_capacity = "", None
    if not capacity:
        endpoint.state = State.DELETING
    endpoint.save(update_fields=["capacity", "refusal", "refused_capacity", "state"])
    kind = Kind.MODEL_ENDPOINT_CHANGED if capacity else Kind.MODEL_ENDPOINT_RELEASED
    append(kind, endpoint, actor=actor, capacity=capacity, capacity_before=before)
    account = endpoint.account
    if not ModelEndpoint.objects.wanted_now().filter(account=account).exists():
        account.state = State.DELETING
        account.save(update_fields=["state"])
    _wanted_anew(account, now=now)


def choose_version(endpoint: ModelEndpoint, version: str) -> None:
    """Keep which version of its model is deployed, the first time that one was chosen."""
    ModelEndpoint.objects.filter(pk=endpoint.pk, version="").update(version=version)


@transaction.atomic
def look_again(team: Team, *, now: datetime) -> None:
    """Have the accounts of a team looked at now, because its Entra group is another."""
    for pk in (
        ModelAccount.objects.in_azure()
        .filter(team=team)
        .order_by("pk")
        .values_list("pk", flat=True)
    ):
        _wanted_anew(locked_account(pk), now=now)


@transaction.atomic
def try_again(endpoint_id: int, *, by: User, now: datetime) -> ModelEndpoint:
    """Have a worker try a model's account now, whatever wait its failures had earned it, parked or not.

    What Azure refused in it is asked for anew. It is harmless to repeat. Raises NoRight for others than platform leads,
    Conflict for a model that is deleted.
    """
    require_lead(by)
    row = locked(endpoint_id)
    account = row.account
    if row.state == State.DELETED:
        raise Conflict(
            "It is deleted: there is nothing to try.", code="model_endpoint_is_deleted"
        )
    was_parked = retry_now(account, now=now)
    refused = ModelEndpoint.objects.filter(account=account, refused_capacity__gt=0)
    refused.update(**NOT_REFUSED)
    row.refusal, row.refused_capacity = "", None
    account.blocked_generation = None
    account.save(update_fields=["blocked_generation"])
    record(
        Kind.MODEL_ACCOUNT_TRIED_AGAIN,
        actor=by.as_actor(),
        subject=("model_account", account.pk),
        team_id=account.team_id,
        what=account.region,
        was_parked=was_parked,
    )
    enqueue_on_commit(account.pk)
    return row


@transaction.atomic
def ready(
    account_id: int,
    *,
    held: Mapping[str, int],
    busy: Collection[str],
    endpoint: str,
    is_open: bool,
    has_keys: bool,
    now: datetime,
) -> None:
    """Write down what Azure has of an account's deployments, by name, once it may be called by its team.

    Of those in `busy`, which Azure works on, it stays what was known.
    """
    account = locked_account(account_id)
    if account.state not in (State.PENDING, State.READY):
        return
    account.endpoint, account.is_open, account.has_keys = endpoint, is_open, has_keys
    if account.state == State.PENDING:
        account.state, account.ready_at = State.READY, now
    seen = ["endpoint", "is_open", "has_keys"]
    account.save(update_fields=[*seen, "state", "ready_at"])
    rows = ModelEndpoint.objects.filter(account=account, deleted_at=None).order_by("pk")
    found = list(rows.select_for_update(of=("self",), no_key=True))
    # One that was granted anew meanwhile has taken over the deployment of one that is deleted.
    taken = {row.deployment for row in found if row.state != State.DELETING}
    for row in found:
        row.account, row.team = account, account.team
        if row.state == State.DELETING:
            if row.deployment in taken or row.deployment not in {*held, *busy}:
                _gone(row, now=now)
        elif row.deployment not in busy:
            _seen(row, held.get(row.deployment, 0), now=now)


@transaction.atomic
def lost(account_id: int) -> None:
    """Write down that Azure has an account no more that is wanted, and none of its models with it."""
    account = locked_account(account_id)
    rows = ModelEndpoint.objects.wanted_now().filter(account=account)
    rows.exclude(held=0).update(held=0)


@transaction.atomic
def deleted(account_id: int, *, now: datetime) -> None:
    """Write down that nothing of an account is left in Azure, its name neither."""
    account = locked_account(account_id)
    if account.state != State.DELETING:
        return
    account.state, account.deleted_at = State.DELETED, now
    account.operation = account.group = None
    account.save(update_fields=["state", "deleted_at", "operation", "group"])
    rows = ModelEndpoint.objects.filter(account=account, deleted_at=None).order_by("pk")
    for row in rows.select_for_update(of=("self",), no_key=True):
        row.account, row.team = account, account.team
        _gone(row, now=now)


@transaction.atomic
def refused(account_id: int, *, capacities: Mapping[str, int], why: str) -> bool:
    """Write down that Azure refuses for good these capacities, by deployment; what was granted for them fails.

    False where all of that was known.
    """
    account, is_news = locked_account(account_id), False
    rows = ModelEndpoint.objects.wanted_now().filter(account=account).order_by("pk")
    for row in rows.select_for_update(of=("self",), no_key=True):
        if (
            row.is_true
            or row.is_refused
            or capacities.get(row.deployment) != row.capacity
        ):
            continue
        row.account, row.team = account, account.team
        row.refusal, row.refused_capacity = why[:600], row.capacity
        row.save(update_fields=["refusal", "refused_capacity"])
        append(Kind.MODEL_ENDPOINT_REFUSED, row, actor=PORTAL, reason=row.refusal)
        is_news = True
    return is_news


@transaction.atomic
def blocked(account_id: int, *, generation: int, why: str, now: datetime) -> None:
    """Tell platform leads, once for a generation, that Azure does not let the portal do what it wants."""
    account = locked_account(account_id)
    if account.generation != generation or account.blocked_generation == generation:
        return
    account.blocked_generation = generation
    account.save(update_fields=["blocked_generation"])
    notices.tell_blocked(account, why=why, now=now)


def append(
    kind: Kind, endpoint: ModelEndpoint, *, actor: Actor, **details: Any
) -> None:
    """Record an event about a model endpoint."""
    record(
        kind,
        actor=actor,
        subject=("model_endpoint", endpoint.pk),
        team_id=endpoint.team_id,
        what=f"{endpoint.model} in {endpoint.account.region}",
        **details,
    )


def _account_of(team: Team, place: Place, *, now: datetime) -> ModelAccount:
    """The team's account in a region, locked: its own there, or a new one."""
    rows = ModelAccount.objects.wanted_now().filter(
        team=team, subscription=place.subscription, region=place.region
    )
    found = rows.values_list("pk", flat=True).first()
    account = None if found is None else locked_account(found)
    if account is not None and account.state in (State.PENDING, State.READY):
        return account
    return ModelAccount.objects.create(
        team=team,
        subscription=place.subscription,
        resource_group=place.resource_group,
        region=place.region,
        created_at=now,
        requeue_at=now,
    )


def _wanted_anew(account: ModelAccount, *, now: datetime) -> None:
    account.generation += 1
    account.message = ""
    account.save(update_fields=["generation", "message", *account.retry(now=now)])
    enqueue_on_commit(account.pk)


def _seen(row: ModelEndpoint, held: int, *, now: datetime) -> None:
    if row.state == State.READY and row.held == held:
        return
    row.held = held
    if held == row.capacity:
        row.refusal, row.refused_capacity = "", None
    if row.state == State.PENDING and held == row.capacity:
        row.state, row.ready_at = State.READY, now
        append(Kind.MODEL_ENDPOINT_READY, row, actor=PORTAL, capacity=row.capacity)
    row.save(update_fields=["held", "state", "ready_at", "refusal", "refused_capacity"])


def _gone(row: ModelEndpoint, *, now: datetime) -> None:
    row.state, row.deleted_at, row.held = State.DELETED, now, 0
    row.save(update_fields=["state", "deleted_at", "held"])
    append(Kind.MODEL_ENDPOINT_GONE, row, actor=PORTAL)
