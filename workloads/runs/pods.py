"""Pods of a run, from the portal's own copy of what is on its cluster."""

from dataclasses import dataclass
from datetime import datetime

from workloads.models import ClusterObject
from workloads.reading.pods import label_of, pod_of
from workloads.reading.values import Object, items, moment, part, text, whole
from workloads.runs.models import Run
from workloads.templates.pods import RUN_LABEL

# Where a pod of an indexed job (alone, or a JobSet's only one) and of a LeaderWorkerSet says which one it is.
NUMBERS = (
    "batch.kubernetes.io/job-completion-index",
    "training.kubeflow.org/replica-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
)
# What a pod that has ended is called, by its phase.
ENDED = {"Succeeded": "Finished", "Failed": "Failed"}


@dataclass(frozen=True, kw_only=True)
class PodSeen:
    """A pod of a run as it was last seen; `number` is None where it has none."""

    name: str
    number: int | None
    word: str
    node: str
    gpus: int
    started_at: datetime | None
    restarts: int
    ended_as: str

    @property
    def is_over(self) -> bool:
        """Whether it has ended, one way or the other."""
        return self.word in ENDED.values()

    @property
    def label(self) -> str:
        """What people call it: its number where it is one of several of a kind."""
        return label_of(self.name, self.number)


def pods_of(run: Run) -> list[PodSeen]:
    """The run's pods that the cluster still has, by their number."""
    rows = ClusterObject.objects.filter(
        cluster=run.tenancy.cluster_id, namespace=run.tenancy.namespace, kind="Pod"
    )
    found = [
        _pod(body)
        for body in rows.values_list("body", flat=True)
        if part(body, "metadata", "labels").get(RUN_LABEL) == run.name
    ]
    return sorted(found, key=lambda one: (one.number is None, one.number, one.name))


def _pod(body: Object) -> PodSeen:
    pod, meta, status = pod_of(body), part(body, "metadata"), part(body, "status")
    marks = {**part(meta, "annotations"), **part(meta, "labels")}
    number = next(
        (marks[name] for name in NUMBERS if str(marks.get(name, "")).isdigit()), None
    )
    containers = items(status, "containerStatuses")
    states = [
        part(one, "state", kind)
        for one in containers
        for kind in ("running", "terminated")
    ]
    started = [at for one in states if (at := moment(one.get("startedAt")))]
    return PodSeen(
        name=pod.name,
        number=int(str(number)) if number is not None else None,
        word=_word(
            pod.phase,
            is_ready=bool(started),
            is_stopping=pod.is_stopping,
            is_placed=bool(pod.node),
        ),
        node=text(part(body, "spec"), "nodeName"),
        gpus=pod.gpus,
        started_at=min(started, default=None),
        restarts=sum(whole(one.get("restartCount")) for one in containers),
        ended_as=pod.ended_as,
    )


def _word(phase: str, *, is_ready: bool, is_stopping: bool, is_placed: bool) -> str:
    if phase in ENDED:
        return ENDED[phase]
    if is_stopping:
        return "Being stopped"
    if is_ready:
        return "Running"
    return "Starting" if is_placed else "Waiting"
