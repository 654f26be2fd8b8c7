"""What changes about a tenancy: its birth, its desired state, and a second look on request."""

from dataclasses import replace
from datetime import datetime

from django.db import IntegrityError, transaction

from accounts.models import Project, Team, User
from accounts.refusals import BadInput, Conflict, NoRight
from accounts.roles import Permission
from audit.actors import Actor
from audit.events import Kind
from audit.log import record
from fleet.models import Cluster, Environment
from provisioning import parking
from provisioning.doorbell import ring_on_commit
from provisioning.models import Isolation, Tenancy
from provisioning.naming import namespace_of
from provisioning.spec import TenancySpec


@transaction.atomic
def create_tenancy(
    *, team: Team, cluster: Cluster, project: Project, environment: str, now: datetime
) -> Tenancy:
    """Give a team a place on a cluster, with nothing desired yet.

    Raises BadInput for an environment that is none, Conflict the second time and on another team's own cluster.
    """
    if environment not in Environment.values:
        raise BadInput(
            "Choose development, test or production.", code="unknown_environment", field="environment"
        )
    # Read under its lock: nobody gives the cluster to one team while another one comes.
    owner = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk).dedicated_to_id
    if owner not in (None, team.pk):
        raise Conflict(
            f"{cluster.title} is another team's own cluster. Choose another.", code="not_for_this_team", field="cluster"
        )  # fmt: skip
    try:
        with transaction.atomic():
            return Tenancy.objects.create(
                team=team,
                cluster=cluster,
                project=project,
                environment=environment,
                isolation=Isolation.NAMESPACE if owner is None else Isolation.CLUSTER,
                namespace=namespace_of(team=team.slug, project=project.slug),
                next_look_at=now,
            )
    except IntegrityError as error:
        raise Conflict(_taken(team, cluster), code="already_there", field="cluster") from error


def _taken(team: Team, cluster: Cluster) -> str:
    """Why there cannot be another place, in words: of a team that leaves, until when."""
    there = Tenancy.objects.present().filter(team=team, cluster=cluster).first()
    if there is not None and not there.is_here:
        return f"{team.name} is leaving {cluster.name}: restore it, or come again when it is gone."
    return f"{team.name} is on {cluster.name} already."


@transaction.atomic
def publish(tenancy: Tenancy, *, spec: TenancySpec, actor: Actor, now: datetime) -> int:
    """Replace the desired state of a tenancy that the caller has locked, and return its generation.

    The same spec changes nothing. A worker is rung on commit.
    """
    wanted = replace(spec, stop=tenancy.stop, access=tenancy.has_access).to_json()
    if tenancy.spec == wanted and tenancy.generation:
        return tenancy.generation
    tenancy.spec = wanted
    tenancy.generation += 1
    tenancy.changed_at = now
    tenancy.save(update_fields=["spec", "generation", "changed_at", *parking.begin_again(tenancy, now=now)])
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
    """Have a worker look at the tenancy now, whatever it saw before, parked or not; harmless to repeat.

    Raises NoRight for who is neither of the team nor a platform lead.
    """
    if tenancy.team_id not in by.team_ids and not by.may(Permission.MANAGE_CLUSTERS):
        raise NoRight(
            "Members of the team and platform leads can have it tried again.", code="not_of_the_team"
        )
    row = Tenancy.objects.select_for_update(no_key=True).order_by().get(pk=tenancy.pk)
    was_parked = row.parked_at is not None
    row.save(update_fields=parking.begin_again(row, now=now))
    if was_parked:
        record(
            Kind.TENANCY_TRIED_AGAIN, actor=by.as_actor(), subject=("tenancy", row.pk), team_id=row.team_id
        )
    ring_on_commit(row.pk)
