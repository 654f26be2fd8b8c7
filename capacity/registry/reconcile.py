"""Working on one access: look at the registry and at who may use it, and do the one next thing."""

from dataclasses import dataclass
from datetime import timedelta
from random import SystemRandom

from audit.events import Kind
from capacity.connection import Azure, azure_of
from capacity.operations import PARKED, RETRIES, Clock, told
from capacity.registry import actions
from capacity.registry.enqueue import queue
from capacity.registry.models import RegistryAccess, RegistryAccessQuerySet
from capacity.registry.plan import Grant, Step, next_step
from connectors.azure.authorization import ACR_PULL, REPOSITORY_WRITER, of_repositories
from connectors.azure.container_registry import Registry
from connectors.azure.ids import parsed, same
from connectors.errors import ConnectorError, PermanentError, TemporaryError
from reconciling import failpoints
from reconciling.controller import Controller
from reconciling.lease import Lease

# What the portal gives: to push only where the right can be kept to the team's own repositories. Roles that people
# gave otherwise are not its business.
OURS = frozenset({ACR_PULL, REPOSITORY_WRITER})
LOOK_AGAIN = timedelta(hours=1)
MAX_STEPS = 10
_random = SystemRandom()


def _rows() -> RegistryAccessQuerySet:
    return RegistryAccess.objects.select_related("team").unfinished()


def _park(row: RegistryAccess, now: object) -> list[str]:
    row.message = PARKED
    actions.append(Kind.REGISTRY_PARKED, row)
    return ["message"]


CONTROLLER: Controller[RegistryAccess] = Controller(rows=_rows, queue=queue, park=_park)


@dataclass(frozen=True)
class Look:
    """What Azure has: the registry, None for none any more, and who may use it of the groups in question."""

    registry: Registry | None
    grants: tuple[Grant, ...]


def reconcile(access_id: int, *, now: Clock) -> bool:
    """Do what is due for an access; False when nothing is, or another worker is at it."""
    lease = CONTROLLER.acquire(access_id, now=now(), only_due=True)
    if lease is None:
        return False
    with CONTROLLER.work(
        lease, now=now, fail=lambda error: _failed(lease, error, now=now)
    ):
        named = parsed(lease.row.registry)
        if named is None:
            raise PermanentError(
                "QM_AZURE_REGISTRY names no registry.", code="bad_name"
            )
        _go_on(lease, azure_of(named.subscription.lower()), now)
    return True


def _go_on(lease: Lease[RegistryAccess], azure: Azure, now: Clock) -> None:
    row = lease.row
    for _ in range(MAX_STEPS):
        look = _look(azure, row)
        wanted = _wanted(row, look)
        step, grant = next_step(wanted, look.grants)
        if grant is None:
            _as_wanted(lease, look, now)
            return
        lease.check(now=now())
        if step is Step.GRANT:
            # Before Azure is told: whoever dies in between withdraws it again when the team has another group by then.
            lease.write(granted_group=grant.group)
            azure.authorization.assign(
                row.registry, grant.role, grant.group, condition=grant.condition
            )
        else:
            azure.authorization.withdraw(row.registry, grant.role, grant.group)
        failpoints.reach(f"registry.{step}")
    raise TemporaryError("Azure takes every step and does not keep it.")


def _look(azure: Azure, row: RegistryAccess) -> Look:
    named = parsed(row.registry)
    assert named is not None  # noqa: S101 - its caller has looked
    registry = azure.registries.registry(named.group, named.name)
    if registry is None:
        return Look(None, ())
    groups = {str(row.group), str(row.granted_group or row.group)}
    found = [
        Grant(one.role, group, one.condition)
        for group in sorted(groups)
        for one in azure.authorization.assignments(row.registry, group)
        if one.role in OURS and same(one.scope, row.registry)
    ]
    return Look(registry, tuple(found))


def _wanted(row: RegistryAccess, look: Look) -> Grant | None:
    if not row.is_wanted:
        return None
    if look.registry is None:
        raise PermanentError(
            "There is no such registry in Azure any more.", code="not_found"
        )
    group = str(row.group)
    if look.registry.is_abac:
        condition = of_repositories([f"{row.team.slug}/"])
        return Grant(REPOSITORY_WRITER, group, condition)
    return Grant(ACR_PULL, group)


def _as_wanted(lease: Lease[RegistryAccess], look: Look, now: Clock) -> None:
    row, at = lease.row, now()
    done = lease.finish(
        requeue_at=at + LOOK_AGAIN,
        now=at,
        attempts=0,
        observed_generation=row.generation,
        message="",
    )
    if done and row.is_wanted and look.registry is not None:
        actions.granted(
            row.pk,
            generation=row.generation,
            login=look.registry.login_server,
            by_repository=look.registry.is_abac,
            now=at,
        )
    elif done:
        actions.withdrawn(row.pk, generation=row.generation)


def _failed(lease: Lease[RegistryAccess], error: ConnectorError, *, now: Clock) -> None:
    """Book the next try, and say why it is not there yet."""
    retry_after = error.retry_after if isinstance(error, TemporaryError) else None
    wait = RETRIES.wait(
        lease.row.attempts, chance=_random.random(), retry_after=retry_after
    )
    lease.finish(requeue_at=now() + wait, now=now(), message=told(error)[:600])
