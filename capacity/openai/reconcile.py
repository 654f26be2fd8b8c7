"""Working on one account: look at Azure, do the one next step, and see the step through.

One worker at a time holds an account's lease, and with it all models of a team in a region: Azure does one thing at a
time in an account. What Azure takes long for is begun, its token stored, and asked after with short calls. Names follow
from the account's number, so that what was begun before a token was stored is found, and not begun twice.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from random import SystemRandom
from typing import Any

from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from capacity import operations
from capacity.connection import Azure, azure_of
from capacity.openai import actions
from capacity.openai.enqueue import queue
from capacity.openai.models import ModelAccount, ModelAccountQuerySet, ModelEndpoint
from capacity.openai.naming import NUMBER, account_name
from capacity.openai.plan import Found, Next, Observed, Step, Wanted, next_step
from capacity.openai.states import State
from capacity.operations import (
    BUSY_WAIT,
    LOOK_AGAIN,
    PARKED,
    RETRIES,
    TOLD_AFTER,
    Clock,
)
from capacity.tagging import tags
from connectors.azure.authorization import OPENAI_USER
from connectors.azure.cognitive_services import Account
from connectors.azure.session import DONE, Operation
from connectors.errors import ConnectorError, PermanentError, TemporaryError
from provisioning.clusters.installation import mark
from reconciling import failpoints
from reconciling.controller import Controller
from reconciling.lease import Lease

# As Azure's own refusal of a model is called.
NOT_OFFERED = "model_not_available"
REFUSALS = operations.REFUSALS | {NOT_OFFERED, "name_taken"}
# What passes without anybody: a group that was just made is not known everywhere for some minutes.
PASSING = frozenset({"", "principal_not_found"})
BUSY = frozenset(
    {
        "Accepted",
        "Creating",
        "Deleting",
        "Moving",
        "Updating",
        "Scaling",
        "ResolvingDNS",
    }
)
FAILED = frozenset({"Failed", "Canceled"})
MAX_STEPS = 40
NO_STEP = Next(Step.NOTHING)
_random = SystemRandom()


def _rows() -> ModelAccountQuerySet:
    return ModelAccount.objects.select_related("team").in_azure()


def _park(row: ModelAccount, now: datetime) -> list[str]:
    row.message = PARKED
    record(
        Kind.MODEL_ACCOUNT_PARKED,
        actor=PORTAL,
        subject=("model_account", row.pk),
        team_id=row.team_id,
        what=f"Azure OpenAI in {row.region}",
    )
    return ["message"]


CONTROLLER: Controller[ModelAccount] = Controller(rows=_rows, queue=queue, park=_park)


@dataclass
class Work:
    """A worker's turn at an account: what is wanted of it, by deployment, and what is being done for which.

    `put_off` is why a deployment could not be made in this turn: it comes after everything else.
    """

    lease: Lease[ModelAccount]
    azure: Azure
    now: Clock
    endpoints: Mapping[str, ModelEndpoint] = field(default_factory=dict)
    doing: Next = NO_STEP
    put_off: dict[str, PermanentError] = field(default_factory=dict)

    @property
    def row(self) -> ModelAccount:
        """The account."""
        return self.lease.row

    @property
    def name(self) -> str:
        """What it is called in Azure."""
        return account_name(self.row.pk, mark=mark(), team=self.row.team.slug)

    @property
    def wanted(self) -> Wanted:
        """What is wanted, as the plan reads it."""
        return Wanted(
            capacities={name: one.capacity for name, one in self.endpoints.items()},
            group=str(self.row.team.entra_group),
            last=frozenset(
                name for name, one in self.endpoints.items() if one.is_refused
            ).union(self.put_off),
        )


def reconcile(account_id: int, *, now: Clock) -> bool:
    """Do what is due for an account; False when nothing is, or another worker is at it."""
    lease = CONTROLLER.acquire(account_id, now=now(), only_due=True)
    if lease is None:
        return False
    work: list[Work] = []
    with CONTROLLER.work(
        lease, now=now, fail=lambda error: _failed(lease, work, error, now=now())
    ):
        # After the lease: what is wanted is as new as its generation, or newer.
        rows = ModelEndpoint.objects.wanted_now().filter(account=lease.row)
        work.append(
            Work(
                lease,
                azure_of(lease.row.subscription),
                now,
                {one.deployment: one for one in rows},
            )
        )
        _work(work[0])
    return True


def _work(work: Work) -> None:
    stored = work.row.operation
    if stored is not None:
        work.doing = Next(Step(stored["step"]), stored["about"])
        operations.see_through(
            work.lease, work.azure, work.now, is_wanted=_is_wanted(work, stored)
        )
        work.doing = NO_STEP
    _go_on(work)


def _is_wanted(work: Work, stored: Mapping[str, Any]) -> bool:
    """Whether an operation is for what is wanted now: a deployment is for its capacity, an account for any."""
    if work.doing.step is not Step.DEPLOY:
        return True
    endpoint = work.endpoints.get(work.doing.about)
    return endpoint is not None and endpoint.capacity == stored.get("capacity")


def _go_on(work: Work) -> None:
    """Take one step after the other, until one is begun that takes Azure long, or there is nothing left to do."""
    lease, now = work.lease, work.now
    for _ in range(MAX_STEPS):
        observed = _look(work)
        work.doing = doing = next_step(work.wanted, observed)
        if doing.step is Step.NOTHING:
            _as_wanted(work)
            return
        if doing.step is Step.WAIT:
            lease.finish(requeue_at=now() + BUSY_WAIT, now=now(), attempts=0)
            return
        lease.check(now=now())
        operation = _begin(work)
        if operation is None:
            continue
        failpoints.reach(f"model_account.{doing.step}")
        if not operation.is_done:
            operations.keep(
                lease,
                operation,
                doing.step,
                now=now(),
                about=doing.about,
                capacity=work.wanted.capacities.get(doing.about, 0),
            )
            failpoints.reach("model_account.stored")
            wait = operations.wait_for(operation)
            lease.finish(requeue_at=now() + wait, now=now(), attempts=0, message="")
            return
    raise TemporaryError("Azure takes every step and does not keep it.")


def _begin(work: Work) -> Operation | None:
    """Begin the step; None for a deployment that is put off, as something keeps the portal from it alone.

    Once everything else is as wanted, what kept it is raised.
    """
    doing = work.doing
    if doing.step is not Step.DEPLOY:
        return STEPS[doing.step](work)
    if doing.about in work.put_off:
        raise work.put_off[doing.about]
    try:
        return _deploy(work)
    except PermanentError as error:
        if error.code in REFUSALS:
            raise
        work.put_off[doing.about] = error
        return None


def _as_wanted(work: Work) -> None:
    """Nothing is left to do: say so."""
    lease, row, at = work.lease, work.row, work.now()
    done = lease.finish(
        requeue_at=at + LOOK_AGAIN,
        now=at,
        attempts=0,
        observed_generation=row.generation,
        message="",
        blocked_generation=None,
        seen_at=at,
    )
    if done and row.state == State.DELETING:
        actions.deleted(row.pk, now=at)


def _look(work: Work) -> Observed:
    row, services, name = work.row, work.azure.services, work.name
    account = services.account(row.resource_group, name)
    if account is None:
        if any(one.held for one in work.endpoints.values()):
            actions.lost(row.pk)
        gone = services.deleted_accounts()
        return Observed(
            is_deleted=any(
                one.name == name and one.location == row.region for one in gone
            )
        )
    deployments = services.deployments(row.resource_group, name)
    observed = Observed(
        account=True,
        is_busy=account.state in BUSY,
        has_failed=account.state in FAILED,
        groups=_groups(work, account),
        deployments={
            one.name: Found(
                capacity=one.capacity,
                is_busy=one.state in BUSY,
                has_failed=one.state in FAILED,
            )
            for one in deployments
        },
    )
    if not observed.is_busy and work.wanted.group in observed.groups:
        _note(work, account, observed)
    return observed


def _note(work: Work, account: Account, observed: Observed) -> None:
    """Keep which models the team may call by now, where that is news: one that waits delays no other."""
    row = work.row
    is_known = (row.state, row.endpoint, row.is_open, row.has_keys) == (
        State.READY,
        account.endpoint,
        account.is_open,
        account.has_keys,
    )
    if not is_known or _is_news(row.endpoints.filter(deleted_at=None), observed):
        actions.ready(
            row.pk,
            held=observed.held,
            busy=observed.busy,
            endpoint=account.endpoint,
            is_open=account.is_open,
            has_keys=account.has_keys,
            now=work.now(),
        )


def _is_news(rows: Iterable[ModelEndpoint], observed: Observed) -> bool:
    """Whether Azure has something else of these models than is known, or no more what is being deleted."""
    known: dict[str, int] = {}
    for row in rows:
        if row.state == State.DELETING and row.deployment not in observed.deployments:
            return True
        if row.state == State.READY and row.deployment not in observed.busy:
            known[row.deployment] = row.held
    return known != observed.held


def _groups(work: Work, account: Account) -> frozenset[str]:
    """Which may call its models of the team's group, and of the one that the team had before."""
    known = {
        str(work.row.team.entra_group),
        str(work.row.group or work.row.team.entra_group),
    }
    found = {
        group
        for group in known
        for one in work.azure.authorization.assignments(account.id, group)
        if one.role == OPENAI_USER and one.scope.lower() == account.id.lower()
    }
    return frozenset(found)


def _make_account(work: Work) -> Operation:
    row = work.row
    return work.azure.services.begin_create_account(
        row.resource_group,
        work.name,
        location=row.region,
        tags=tags(
            NUMBER,
            row.pk,
            mark=mark(),
            team=row.team.slug,
            cost_centre=row.team.cost_centre,
        ),
    )


def _grant_role(work: Work) -> Operation:
    group = work.doing.about
    # Before Azure is told: whoever dies in between withdraws it again when the team has another group by then.
    work.lease.write(group=group)
    work.row.group = work.row.team.entra_group
    work.azure.authorization.assign(_scope(work), OPENAI_USER, group)
    return DONE


def _withdraw_role(work: Work) -> Operation:
    work.azure.authorization.withdraw(_scope(work), OPENAI_USER, work.doing.about)
    return DONE


def _deploy(work: Work) -> Operation:
    name = work.doing.about
    endpoint = work.endpoints[name]
    return work.azure.services.begin_deploy(
        work.row.resource_group,
        work.name,
        name,
        model=endpoint.model,
        version=_version(work, endpoint),
        sku=endpoint.sku,
        capacity=endpoint.capacity,
    )


def _delete_deployment(work: Work) -> Operation:
    return work.azure.services.begin_delete_deployment(
        work.row.resource_group, work.name, work.doing.about
    )


def _delete_account(work: Work) -> Operation:
    return work.azure.services.begin_delete_account(work.row.resource_group, work.name)


def _purge(work: Work) -> Operation:
    row = work.row
    return work.azure.services.begin_purge_account(
        row.resource_group, work.name, row.region
    )


STEPS: Mapping[Step, Callable[[Work], Operation]] = {
    Step.MAKE_ACCOUNT: _make_account,
    Step.GRANT_ROLE: _grant_role,
    Step.WITHDRAW_ROLE: _withdraw_role,
    Step.DEPLOY: _deploy,
    Step.DELETE_DEPLOYMENT: _delete_deployment,
    Step.DELETE_ACCOUNT: _delete_account,
    Step.PURGE: _purge,
}


def _scope(work: Work) -> str:
    return (
        f"/subscriptions/{work.row.subscription}/resourceGroups/{work.row.resource_group}"
        f"/providers/Microsoft.CognitiveServices/accounts/{work.name}"
    )


def _version(work: Work, endpoint: ModelEndpoint) -> str:
    """The version that is deployed: the one that was chosen before, else what the region offers by default."""
    if endpoint.version:
        return endpoint.version
    found = [
        one
        for one in work.azure.services.models(work.row.region)
        if one.name == endpoint.model and one.sku == endpoint.sku
    ]
    if not found:
        raise PermanentError(
            f"{work.row.region} offers no {endpoint.model} that is deployed as {endpoint.sku}.",
            code=NOT_OFFERED,
        )
    best = max(found, key=lambda one: (one.is_default, one.version))
    actions.choose_version(endpoint, best.version)
    return best.version


def _failed(
    lease: Lease[ModelAccount],
    work: list[Work],
    error: ConnectorError,
    *,
    now: datetime,
) -> None:
    """Book the next try; what Azure does not have for this team fails what was granted with it, but never a deletion.

    What keeps the portal from it otherwise is for platform leads: the grant waits.
    """
    row = lease.row
    code = error.code if isinstance(error, PermanentError) else ""
    retry_after = error.retry_after if isinstance(error, TemporaryError) else None
    concerned = _concerned(work[0]) if work else {}
    if code in REFUSALS and concerned and row.state != State.DELETING:
        if actions.refused(row.pk, capacities=concerned, why=error.message):
            # What was refused comes last from now on, and the rest goes on.
            lease.finish(requeue_at=now, now=now, message=error.message[:600])
            return
    elif code not in PASSING and row.attempts >= TOLD_AFTER:
        why = error.message[:600]
        actions.blocked(row.pk, generation=row.generation, why=why, now=now)
    wait = RETRIES.wait(row.attempts, chance=_random.random(), retry_after=retry_after)
    lease.finish(requeue_at=now + wait, now=now, message=operations.told(error)[:600])


def _concerned(work: Work) -> Mapping[str, int]:
    """The capacities, by deployment, that a step was for: one, or all where there is no account for any of them."""
    if work.doing.step is Step.MAKE_ACCOUNT:
        return {name: one.capacity for name, one in work.endpoints.items()}
    if work.doing.step is Step.DEPLOY and work.doing.about in work.endpoints:
        return {work.doing.about: work.endpoints[work.doing.about].capacity}
    return {}
