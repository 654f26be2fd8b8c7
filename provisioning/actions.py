"""What changes about a tenancy: its birth, its desired state, and a second look on request."""

from dataclasses import replace
from datetime import datetime

from django.db import IntegrityError, transaction

from accounts.models import Project, Team, User
from accounts.roles import Permission
from audit.actors import Actor
from audit.events import Kind
from audit.log import record
from fleet.models import Cluster, Environment
from provisioning import parking
from provisioning.desired.naming import namespaces_of
from provisioning.desired.spec import TenancySpec
from provisioning.enqueue import enqueue_on_commit
from provisioning.models import Isolation, Tenancy
from web.refusals import BadInput, Conflict, NoRight


@transaction.atomic
def create_tenancy(
    *, team: Team, cluster: Cluster, project: Project, environment: str, now: datetime
) -> Tenancy:
    """Give a project of a team an environment on a cluster, with nothing desired yet.

    A team may have several: a namespace for each project and environment. Raises BadInput for an environment that is
    none, Conflict for one that the project has there already and on another team's own cluster.
    """
    if environment not in Environment.values:
        raise BadInput(
            "Choose development, test or production.",
            code="unknown_environment",
            field="environment",
        )
    # Read under its lock: nobody gives the cluster to one team while another one comes.
    owner = (
        Cluster.objects.select_for_update(no_key=True)
        .get(pk=cluster.pk)
        .dedicated_to_id
    )
    if owner not in (None, team.pk):
        raise Conflict(
            f"{cluster.title} is another team's own cluster. Choose another.",
            code="not_for_this_team",
            field="cluster",
        )
    try:
        with transaction.atomic():
            return Tenancy.objects.create(
                team=team,
                cluster=cluster,
                project=project,
                environment=environment,
                isolation=Isolation.NAMESPACE if owner is None else Isolation.CLUSTER,
                namespace=_free_namespace(cluster, project, environment),
                requeue_at=now,
            )
    except IntegrityError as error:
        refusal = why_not_another(project, cluster, environment)
        raise Conflict(refusal, code="already_there", field="cluster") from error


def why_not_another(project: Project, cluster: Cluster, environment: str) -> str:
    """Why a project cannot have this environment on a cluster once more, in words; empty when it can."""
    rows = Tenancy.objects.present().filter(
        project=project, cluster=cluster, environment=environment
    )
    there = rows.select_related("team").first()
    if there is None:
        return ""
    words = f"{there.get_environment_display().lower()} of {project.slug}"
    if not there.is_here:
        return f"{there.team.name}’s {words} is leaving {cluster.title}: restore it, or come again when it is gone."
    return (
        f"{there.team.name} has {words} on {cluster.title} already: {there.namespace}."
    )


def _free_namespace(cluster: Cluster, project: Project, environment: str) -> str:
    """The short name, or the one with the environment where another environment of the project has the short one."""
    short, long = namespaces_of(
        team=project.team.slug, project=project.slug, environment=environment
    )
    is_taken = (
        Tenancy.objects.present().filter(cluster=cluster, namespace=short).exists()
    )
    return long if is_taken else short


@transaction.atomic(savepoint=False)
def publish(tenancy: Tenancy, *, spec: TenancySpec, actor: Actor, now: datetime) -> int:
    """Replace the desired state of a tenancy that the caller has locked, and return its generation.

    The same spec changes nothing. A worker is rung on commit.
    """
    wanted = replace(
        spec,
        stop=tenancy.stop,
        access=tenancy.has_access,
        maintenance=tenancy.cluster.stop_policy(now),
    ).to_json()
    if tenancy.spec == wanted and tenancy.generation:
        return tenancy.generation
    tenancy.spec = wanted
    tenancy.generation += 1
    tenancy.changed_at = now
    tenancy.save(
        update_fields=[
            "spec",
            "generation",
            "changed_at",
            *parking.retry(tenancy, now=now),
        ]
    )
    record(
        Kind.TENANCY_CHANGED,
        actor=actor,
        subject=("tenancy", tenancy.pk),
        team_id=tenancy.team_id,
        generation=tenancy.generation,
        gpus={flavor.name: flavor.gpus for flavor in spec.flavors if flavor.gpus},
    )
    enqueue_on_commit(tenancy.pk)
    return tenancy.generation


@transaction.atomic
def look_again(tenancy: Tenancy, *, by: User, now: datetime) -> None:
    """Have a worker look at the tenancy now, whatever it saw before, parked or not; harmless to repeat.

    Raises NoRight for who is neither of the team nor a platform lead.
    """
    if tenancy.team_id not in by.team_ids and not by.may(Permission.MANAGE_CLUSTERS):
        raise NoRight(
            "Members of the team and platform leads can have it tried again.",
            code="not_of_the_team",
        )
    row = Tenancy.objects.locked().order_by().get(pk=tenancy.pk)
    was_parked = row.parked_at is not None
    row.save(update_fields=parking.retry(row, now=now))
    if was_parked:
        record(
            Kind.TENANCY_TRIED_AGAIN,
            actor=by.as_actor(),
            subject=("tenancy", row.pk),
            team_id=row.team_id,
        )
    enqueue_on_commit(row.pk)
