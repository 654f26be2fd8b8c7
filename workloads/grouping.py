"""Which objects of a namespace belong together: each piece of work with its Workload, its job and its pods. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from workloads.observed import JobKey, Slices, Workload, slices_of
from workloads.reading.values import (
    Object,
    gpus_by_profile,
    gpus_of_pod,
    gpus_of_pods_in,
    items,
    moment,
    part,
    slices_in,
    slices_of_pods_in,
    text,
    uid_of,
    whole,
)
from workloads.reading.work import Read, key_of, workload_of

WORKLOAD = "kueue.x-k8s.io/workload"
# By which a pod says to which of Volcano's PodGroups it belongs, which is a Workload here.
GROUP = "scheduling.k8s.io/group-name"


@dataclass(slots=True)
class Piece:
    """What somebody started, by whatever way: the object that they know, and what others made for it.

    `parts` are the Jobs that it made, as a JobSet does.
    """

    key: JobKey
    workload: Object | None = None
    job: Object | None = None
    parts: list[Object] = field(default_factory=list)
    pods: list[Object] = field(default_factory=list)
    read: Read = workload_of

    @property
    def queued(self) -> Workload | None:
        """Its Workload, where Kueue made one."""
        return self.read(self.workload) if self.workload is not None else None

    @property
    def created(self) -> datetime | None:
        """Since when it is there."""
        if self.job is None and (queued := self.queued) is not None:
            return queued.created
        first = self.job or (self.pods[0] if self.pods else None)
        return moment(part(first, "metadata").get("creationTimestamp"))

    @property
    def gpus(self) -> int:
        """The GPUs that all its pods together ask for."""
        if (queued := self.queued) is not None:
            return queued.gpus
        if self.job is not None:
            spec = part(self.job, "spec")
            pods = whole(spec.get("parallelism")) if "parallelism" in spec else 1
            return pods * gpus_of_pods_in(spec)
        return sum(gpus_of_pod(part(one, "spec")) for one in self.pods)

    @property
    def slices(self) -> Slices:
        """Those of them that are MIG slices."""
        if (queued := self.queued) is not None:
            return queued.slices
        return slices_of(self._slices_of_pods())

    def _slices_of_pods(self) -> Iterator[tuple[int, Slices]]:
        """How many pods there are of a shape, and the slices of one of them."""
        if self.job is not None:
            spec = part(self.job, "spec")
            yield whole(spec.get("parallelism", 1)), slices_of_pods_in(spec)
            return
        for one in self.pods:
            yield 1, slices_in(gpus_by_profile(part(one, "spec")))


def pieces_of(
    workloads: Iterable[Object],
    jobs: Iterable[Object],
    pods: Iterable[Object],
    *,
    read: Read = workload_of,
) -> list[Piece]:
    """Everything that runs or wants to in one namespace, each once: what is owned stands with its owner.

    Pods without a GPU that something else keeps running are left out: a web server is no work of this kind.
    """
    by_uid = {uid_of(job): job for job in jobs}
    found: dict[str, Piece] = {}
    by_workload: dict[str, Piece] = {}
    for one in workloads:
        key = read(one).key
        piece = found.setdefault(key.uid or uid_of(one), Piece(key, read=read))
        # Of two for one owner (it was evicted and made anew) the newer one counts.
        if piece.workload is None or _age(one) > _age(piece.workload):
            piece.workload = one
        piece.job = by_uid.get(key.uid)
        by_workload[text(part(one, "metadata"), "name")] = piece
    for uid, job in by_uid.items():
        owner = _owner(job)
        if owner is None:
            found.setdefault(uid, Piece(_key(job), job=job))
        elif (above := found.get(text(owner, "uid"))) is not None:
            above.parts.append(job)
    for pod in pods:
        target = _piece_of_pod(pod, found, by_workload, by_uid)
        if target is not None:
            target.pods.append(pod)
    return list(found.values())


def _piece_of_pod(
    pod: Object,
    found: dict[str, Piece],
    by_workload: Mapping[str, Piece],
    jobs: Mapping[str, Object],
) -> Piece | None:
    meta = part(pod, "metadata")
    for marked in _marks(meta):
        if marked in by_workload:
            return by_workload[marked]
    owner = _owner(pod)
    if owner is None:
        return found.setdefault(uid_of(pod), Piece(_key(pod)))
    uid = text(owner, "uid")
    above = _owner(jobs[uid]) if uid in jobs else None
    if above is not None and text(above, "uid") in found:
        return found[text(above, "uid")]
    if uid in found:
        return found[uid]
    if uid in jobs or not gpus_of_pod(part(pod, "spec")):
        return None
    return found.setdefault(uid, Piece(key_of(meta)))


def _marks(meta: Object) -> Iterator[str]:
    for name in ("labels", "annotations"):
        if marked := text(part(meta, name), WORKLOAD):
            yield marked
    if marked := text(part(meta, "annotations"), GROUP):
        yield marked


def _owner(found: Object) -> Object | None:
    owners: Sequence[Object] = items(part(found, "metadata"), "ownerReferences")
    return next((one for one in owners if one.get("controller")), None)


def _key(found: Object) -> JobKey:
    meta = part(found, "metadata")
    return JobKey(
        text(meta, "namespace"),
        text(meta, "name"),
        text(found, "kind"),
        text(meta, "uid"),
    )


def _age(found: Object) -> str:
    return text(part(found, "metadata"), "creationTimestamp")
