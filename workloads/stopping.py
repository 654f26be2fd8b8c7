"""Ending work of a team, by whatever way it was started."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from accounts.models import Team, User
from audit.events import Kind
from audit.log import record
from connectors.errors import ConnectorError, PermanentError
from connectors.kubernetes import Ref, ref_of
from provisioning.delivery import client_for
from provisioning.desired.kueue_form import VOLCANO_JOB
from provisioning.desired.volcano import JOB
from provisioning.models import Tenancy
from web.refusals import Away, BadInput, Conflict, NoRight
from workloads.runs import actions as runs
from workloads.runs.models import Run

# What people start work as, by the kind that its line tells.
KINDS: Mapping[str, Ref] = {
    "Job": ("batch/v1", "Job"),
    "Pod": ("v1", "Pod"),
    "JobSet": ("jobset.x-k8s.io/v1alpha2", "JobSet"),
    "TrainJob": ("trainer.kubeflow.org/v1alpha1", "TrainJob"),
    "MPIJob": ("kubeflow.org/v2beta1", "MPIJob"),
    "PyTorchJob": ("kubeflow.org/v1", "PyTorchJob"),
    "LeaderWorkerSet": ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
    VOLCANO_JOB: JOB,
}
# Names of pods and jobs (RFC 1123 subdomain): neither "" nor "..", with which a path would lead to something else.
NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, kw_only=True)
class Target:
    """One piece of work as its line names it; `uid` tells it from another that was made under its name."""

    cluster: str
    namespace: str
    kind: str
    name: str
    uid: str


def stop_work(team: Team, target: Target, *, by: User, now: datetime) -> None:
    """Have a cluster delete a piece of work, or end the run that it is; asked twice it is the same.

    Raises NoRight, BadInput for what is not the team's or of no known kind, Conflict when another one has its name by
    now and on a cluster that follows Git, Away while the cluster does not answer.
    """
    if not runs.may_stop(team.pk, by):
        raise NoRight(
            "People of the team and platform leads stop its work.",
            code="not_of_the_team",
        )
    if not target.kind:
        raise BadInput("This is no piece of work.", code="no_such_work", field="kind")
    if target.kind not in KINDS:
        known = ", ".join(KINDS)
        raise BadInput(
            f"The portal stops {known}. Use kubectl for this.",
            code="not_stoppable",
            field="kind",
        )
    if not NAME.fullmatch(target.name) or not target.uid:
        raise BadInput(
            "Nothing there has this name and uid.", code="no_such_work", field="name"
        )
    tenancy = (
        Tenancy.objects.present()
        .select_related("cluster")
        .filter(team=team, cluster__name=target.cluster, namespace=target.namespace)
        .first()
    )
    if tenancy is None:
        raise BadInput(
            "The team has no such namespace there.",
            code="not_of_the_team",
            field="namespace",
        )
    run = Run.objects.live().filter(tenancy=tenancy, name=target.name).first()
    if run is not None and ref_of(run.main) == KINDS[target.kind]:
        runs.stop(run.pk, by=by, now=now)
        return
    _refuse_following_git(tenancy)
    # Written down before it is done: what a cluster was asked for is never unknown.
    with transaction.atomic():
        record(
            Kind.WORK_DELETED,
            actor=by.as_actor(),
            subject=("tenancy", tenancy.pk),
            team_id=team.pk,
            cluster=target.cluster,
            namespace=target.namespace,
            work=f"{target.kind} {target.name}",
        )
    try:
        client_for(tenancy.cluster).delete(
            KINDS[target.kind], target.name, target.namespace, uid=target.uid
        )
    except PermanentError as error:
        if error.code == "conflict":
            raise Conflict(
                "Another one has this name by now: look at it first.",
                code="another_one",
            ) from error
        raise Away(
            f"The cluster refused: {error.message[:200]}", code="cluster_away"
        ) from error
    except ConnectorError as error:
        raise Away(
            f"The cluster does not answer: {error.message[:200]}", code="cluster_away"
        ) from error


def _refuse_following_git(tenancy: Tenancy) -> None:
    if not tenancy.cluster.is_written_to:
        raise Conflict(
            f"{tenancy.cluster.title} follows Git, and the portal stops nothing there. Use kubectl.",
            code="follows_git",
        )
