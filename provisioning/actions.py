"""What changes about a tenancy: its birth, its desired state, and a second look on request."""

from datetime import datetime

from django.db import IntegrityError, transaction

from accounts.models import Project, Team, User
from accounts.refusals import BadInput, Conflict, NoRight
from accounts.roles import Permission
from audit.actors import Actor
from audit.events import Kind
from audit.log import record
from fleet.models import Cluster, Environment
from provisioning.doorbell import ring_on_commit
from provisioning.models import Tenancy
from provisioning.naming import namespace_of
from provisioning.spec import TenancySpec


@transaction.atomic
def create_tenancy(
    *, team: Team, cluster: Cluster, project: Project, environment: str, now: datetime
) -> Tenancy:
    """Give a team a place on a cluster, with nothing desired yet.

    Raises BadInput for an environment that is none, Conflict the second time.
    """
    if environment not in Environment.values:
        raise BadInput(
            "Choose development, test or production.", code="unknown_environment", field="environment"
        )
    try:
        with transaction.atomic():
            return Tenancy.objects.create(
                team=team,
                cluster=cluster,
                project=project,
                environment=environment,
                namespace=namespace_of(team=team.slug, project=project.slug),
                next_look_at=now,
            )
    except IntegrityError as error:
        raise Conflict(
            f"{team.name} is on {cluster.name} already.", code="already_there", field="cluster"
        ) from error


@transaction.atomic
def publish(tenancy: Tenancy, *, spec: TenancySpec, actor: Actor, now: datetime) -> int:
    """Replace the desired state of a tenancy that the caller has locked, and return its generation.

    The same spec changes nothing. A worker is rung on commit.
    """
    wanted = spec.to_json()
    if tenancy.spec == wanted and tenancy.generation:
        return tenancy.generation
    tenancy.spec = wanted
    tenancy.generation += 1
    tenancy.changed_at = tenancy.next_look_at = now
    tenancy.attempts = 0
    tenancy.save(update_fields=["spec", "generation", "changed_at", "next_look_at", "attempts"])
    record(
        Kind.TENANCY_CHANGED,
        actor=actor,
        subject=("tenancy", tenancy.pk),
        team_id=tenancy.team_id,
        generation=tenancy.generation,
        gpus={flavor.name: flavor.gpus for flavor in spec.flavors if flavor.gpus},
    )
    ring_on_commit(tenancy.pk)
    return tenancy.generation


@transaction.atomic
def look_again(tenancy: Tenancy, *, by: User, now: datetime) -> None:
    """Have a worker look at the tenancy now, whatever it saw before; harmless to repeat.

    Raises NoRight for who is neither of the team nor a platform lead.
    """
    if tenancy.team_id not in by.team_ids and not by.may(Permission.MANAGE_CLUSTERS):
        raise NoRight(
            "Members of the team and platform leads can have it tried again.", code="not_of_the_team"
        )
    Tenancy.objects.filter(pk=tenancy.pk).update(next_look_at=now, attempts=0)
    ring_on_commit(tenancy.pk)
