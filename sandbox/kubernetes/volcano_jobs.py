"""Volcano's job controller: a job's group and pods, its restarts, its end, and its removal some time after.

After pkg/controllers/job (job_controller_actions.go: killJob, syncJob; job_controller_handler.go: updatePod,
deletePod) and pkg/controllers/garbagecollector of volcano-sh/volcano 1.15. A job that ends loses its group and its
Service at once; its pods that ended stay, as long as it does.
"""

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sandbox.kubernetes.admission import Admission
from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.controllers_pods import POD, phase_of
from sandbox.kubernetes.creating import create, owned_by
from sandbox.kubernetes.events import VOLCANO_CONTROLLERS, tell
from sandbox.kubernetes.identity import Identity
from sandbox.kubernetes.kinds import VOLCANO_BATCH, VOLCANO_SCHEDULING, Kind, builtin
from sandbox.kubernetes.status import Refusal
from sandbox.kubernetes.statuses import write_object, write_status
from sandbox.kubernetes.store import Change, Key, Obj, Store
from sandbox.kubernetes.volcano_children import (
    TASK,
    VERSION,
    group_name,
    group_spec,
    host_files,
    network_spec,
    pod_names,
    pod_of,
    service_spec,
    svc_says,
)
from sandbox.kubernetes.volcano_job_rules import least_of
from sandbox.kubernetes.volcano_states import (
    ABORTED,
    ABORTING,
    ENDED,
    ENDS,
    FINISHED,
    KEPT,
    PENDING,
    RESTART,
    RESTARTING,
    RESUME,
    RUNNING,
    Request,
    action_of,
    after_ending,
    after_pending,
    after_restarting,
    after_running,
    phase_of_job,
)
from sandbox.kubernetes.volcano_webhook import GROUP, JOB, tasks_of

SERVICE, CONFIG_MAP = builtin("v1", "Service"), builtin("v1", "ConfigMap")
NETWORK = builtin("networking.k8s.io/v1", "NetworkPolicy")
PRIORITY = builtin("scheduling.k8s.io/v1", "PriorityClass")
CONTROLLER = Identity(
    "system:serviceaccount:volcano-system:volcano-controllers",
    ("system:serviceaccounts", "system:serviceaccounts:volcano-system"),
)
COUNTS = {
    "Pending": "pending",
    "Running": "running",
    "Succeeded": "succeeded",
    "Failed": "failed",
}
Status = dict[str, Any]
Next = Callable[[Obj, Status], str]
Remove = Callable[[Kind, Obj], None]


class VolcanoJobs:
    """Keeps the Volcano jobs of one store going; `run` works through what happened to them."""

    def __init__(
        self,
        store: Store,
        admission: Admission,
        now: Callable[[], float],
        remove: Remove,
        sweep: Remove,
    ) -> None:
        self._store = store
        self._admission = admission
        self._now = now
        # Something goes at once; or once all that belongs to it has gone.
        self._remove = remove
        self._sweep = sweep
        self._requests: list[Request] = []
        self._blocked: set[Key] = set()
        self._ends: dict[Key, float] = {}

    @property
    def next_due(self) -> float | None:
        """When a job that is over goes next."""
        return min(self._ends.values(), default=None)

    def react(self, change: Change) -> None:
        """Remember what happened to a job, its group or its pods."""
        match change.resource:
            case (group, "jobs") if group == VOLCANO_BATCH:
                self._job(change)
            case (_, "podgroups") if owner := owning_job(change.after.obj):
                self._requests.append(Request((change.key[0], owner)))
            case ("", "pods") if owner := owning_job(change.after.obj):
                self._requests.append(self._of_pod(change, owner))
            case ("", "resourcequotas" | "limitranges"):
                self._requests += [
                    Request(key) for key in self._blocked if key[0] == change.key[0]
                ]
            case (group, "queues") if group == VOLCANO_SCHEDULING:
                self._requests += map(Request, self._blocked)

    def ask(self, key: Key, action: str) -> None:
        """Do something to a job that somebody asks for."""
        self._requests.append(Request(key, action=action))

    def resume(self) -> None:
        """Look at every job again after the store was filled from a snapshot."""
        self._ends.clear()
        self._requests = [Request(_key(job)) for job in self._store.objects(JOB)]

    def run(self) -> bool:
        """Work through what happened; True when there was anything."""
        over = [key for key, moment in self._ends.items() if moment <= self._now()]
        asked, self._requests = [*self._requests, *map(Request, over)], []
        for request in asked:
            job = self._store.get(JOB, *request.key)
            if job is not None and "deletionTimestamp" not in job["metadata"]:
                self._blocked.discard(request.key)
                self._execute(job, action_of(job, request))
        return bool(asked)

    def _job(self, change: Change) -> None:
        """A job is looked at when it is new, when its phase changed and when somebody changed it."""
        before, job = change.before.obj if change.before else None, change.after.obj
        if change.removed:
            self._ends.pop(change.key, None)
        elif (
            before is None
            or before["spec"] != job["spec"]
            or phase_of_job(before) != phase_of_job(job)
        ):
            self._requests.append(Request(change.key))

    def _of_pod(self, change: Change, owner: str) -> Request:
        """The event of a pod, for the policies."""
        pod, before = change.after.obj, change.before.obj if change.before else None
        annotations = part(dict(pod["metadata"]), "annotations")
        task, event, code = str(annotations.get(TASK, "")), "", 0
        was = phase_of(before) if before is not None else ""
        if change.removed:
            event = "PodEvicted"
        elif phase_of(pod) == "Failed" and was != "Failed":
            event, code = "PodFailed", _exit_code(pod)
        elif (
            phase_of(pod) == "Succeeded"
            and was != "Succeeded"
            and self._is_done(pod, owner, task)
        ):
            event = "TaskCompleted"
        uid = next(
            one["uid"]
            for one in pod["metadata"]["ownerReferences"]
            if one.get("controller")
        )
        key = (change.key[0], owner)
        return Request(key, uid, event, task, code, int(annotations.get(VERSION, 0)))

    def _is_done(self, pod: Obj, owner: str, name: str) -> bool:
        job = self._store.get(JOB, pod["metadata"]["namespace"], owner)
        tasks = (
            [one for one in tasks_of(job) if one["name"] == name]
            if job is not None
            else []
        )
        if job is None or not tasks:
            return False
        done = [
            one
            for one in self._pods(job)
            if _task(one) == name and phase_of(one) == "Succeeded"
        ]
        return 0 < int(tasks[0].get("replicas", 0)) <= len(done)

    def _pods(self, job: Obj) -> list[Obj]:
        metadata = job["metadata"]
        return [
            pod
            for pod in self._store.objects(POD, metadata["namespace"])
            if any(
                one["uid"] == metadata["uid"]
                for one in pod["metadata"].get("ownerReferences") or ()
            )
        ]

    def _execute(self, job: Obj, action: str) -> None:
        phase = phase_of_job(job)
        if phase in FINISHED:
            if self._owns(job):
                self._kill(job, KEPT, lambda _, status: phase)
            self._expire(job)
        elif phase in ENDED or phase == ABORTED:
            if action == RESUME and phase in {ABORTING, ABORTED}:
                self._restart(job, KEPT)
            elif phase in ENDED:
                self._kill(job, KEPT, lambda _, status: after_ending(phase, status))
        elif phase == RESTARTING:
            self._kill(job, frozenset(), after_restarting)
        elif action == RESTART:
            self._restart(job, frozenset())
        elif action in ENDS:
            self._kill(job, KEPT, lambda _, status: ENDS[action])
        else:
            self._sync(job, after_running if phase == RUNNING else after_pending)

    def _restart(self, job: Obj, kept: frozenset[str]) -> None:
        def counted(_: Obj, status: Status) -> str:
            status["retryCount"] = int(status.get("retryCount", 0)) + 1
            return RESTARTING

        self._kill(job, kept, counted)

    def _owns(self, job: Obj) -> bool:
        """Whether a job that is over still has what it is to lose."""
        busy = any(phase_of(pod) not in KEPT for pod in self._pods(job))
        return (
            busy
            or self._store.get(GROUP, job["metadata"]["namespace"], group_name(job))
            is not None
        )

    def _kill(self, job: Obj, kept: frozenset[str], follows: Next) -> None:
        """Take away a job's pods but for those that are kept, its group and what its plugins made."""
        status = dict(part(dict(job), "status"))
        if int(status.get("retryCount", 0)) >= int(job["spec"].get("maxRetry", 0)) - 1:
            kept = KEPT
        counted, terminating = list[Obj](), 0
        for pod in self._pods(job):
            if phase_of(pod) in kept:
                counted.append(pod)
            else:
                terminating += 1
                self._remove(POD, pod)
        status = _with_counts(status, counted, terminating)
        status["version"] = int(status.get("version", 0)) + 1
        status["runningDuration"] = (
            f"{_age(str(job['metadata']['creationTimestamp']))}s"
        )
        status.pop("controlledResources", None)
        self._conclude(job, status, follows)
        self._unplug(job)
        namespace = job["metadata"]["namespace"]
        group = self._store.get(GROUP, namespace, group_name(job))
        if group is not None:
            self._remove(GROUP, group)

    def _sync(self, job: Obj, follows: Next) -> None:
        """Make what is missing of a job, once its group may have pods."""
        status = dict(part(dict(job), "status"))
        if not phase_of_job(job):
            status["minAvailable"] = job["spec"].get("minAvailable", 0)
            self._conclude(job, status, lambda _, status: PENDING)
            return
        if not self._begin(job, status):
            return
        group = (
            self._store.get(GROUP, job["metadata"]["namespace"], group_name(job)) or {}
        )
        self._complain(job, group)
        if part(dict(group), "status").get("phase") in {None, "", PENDING}:
            self._conclude(job, status, follows)
            return
        made = self._make(job)
        if made is None:
            return
        status = _with_counts(status, made, 0)
        status["minAvailable"] = job["spec"].get("minAvailable", 0)
        status.pop("runningDuration", None)
        self._conclude(job, status, follows)

    def _begin(self, job: Obj, status: Status) -> bool:
        """Make or change a job's group, and what its plugins make; False where that is refused."""
        failure, key = "PluginError", _key(job)
        try:
            self._plug_in(job, status)
            failure = "PodGroupError"
            self._group(job)
        except Refusal as refusal:
            self._blocked.add(key)
            words = {
                "PluginError": "Execute plugin when job add failed",
                "PodGroupError": "Failed to create PodGroup",
            }
            self._tell(
                job, failure, f"{words[failure]}, err: {refusal.message}", warning=True
            )
            return False
        return True

    def _group(self, job: Obj) -> None:
        metadata = job["metadata"]
        namespace, name = metadata["namespace"], group_name(job)
        known = {
            one["metadata"]["name"]: int(one.get("value") or 0)
            for one in self._store.objects(PRIORITY)
        }
        spec, live = group_spec(job, known), self._store.get(GROUP, namespace, name)
        if live is not None:
            changed = {
                **live,
                "spec": {**live["spec"], **spec, "queue": live["spec"]["queue"]},
            }
            write_object(self._store, GROUP, live, changed, VOLCANO_CONTROLLERS)
            return
        head: dict[str, Any] = {
            word: dict(metadata[word])
            for word in ("labels", "annotations")
            if metadata.get(word)
        }
        head |= {
            "name": name,
            "namespace": namespace,
            "ownerReferences": [owned_by(job)],
            "generation": 1,
        }
        self._create(GROUP, head, {"spec": spec, "status": {}})

    def _plug_in(self, job: Obj, status: Status) -> None:
        plugins = part(dict(job["spec"]), "plugins")
        if plugins:
            status["controlledResources"] = {f"plugin-{name}": name for name in plugins}
        if "svc" in plugins:
            name = job["metadata"]["name"]
            made: list[tuple[Kind, str, dict[str, Any]]] = [
                (CONFIG_MAP, f"{name}-svc", {"data": host_files(job)}),
                (SERVICE, name, {"spec": service_spec(job)}),
            ]
            if not svc_says(job, "disable-network-policy"):
                made.append((NETWORK, name, {"spec": network_spec(job)}))
            for kind, called, body in made:
                if self._store.get(kind, job["metadata"]["namespace"], called) is None:
                    head = {"name": called, "namespace": job["metadata"]["namespace"]}
                    self._create(
                        kind, {**head, "ownerReferences": [owned_by(job)]}, body
                    )

    def _unplug(self, job: Obj) -> None:
        namespace, name = _key(job)
        for kind, called in (
            (CONFIG_MAP, f"{name}-svc"),
            (SERVICE, name),
            (NETWORK, name),
        ):
            made = self._store.get(kind, namespace, called)
            if made is not None and owning_job(made) == name:
                self._remove(kind, made)

    def _create(
        self, kind: Kind, metadata: dict[str, Any], body: dict[str, Any]
    ) -> Obj:
        return create(
            self._store,
            self._admission,
            kind,
            metadata,
            body,
            CONTROLLER,
            VOLCANO_CONTROLLERS,
        )

    def _complain(self, job: Obj, group: Obj) -> None:
        for condition in items(part(dict(group), "status"), "conditions"):
            if condition["type"] == "Unschedulable":
                namespace, name = _key(job)
                said = f"PodGroup {namespace}:{name} unschedule,reason: {condition['message']}"
                self._tell(job, "PodGroupPending", said, warning=True)

    def _make(self, job: Obj) -> list[Obj] | None:
        """Make the pods that are missing and delete those that are too many; None where one is refused."""
        there = {str(pod["metadata"]["name"]): pod for pod in self._pods(job)}
        kept: list[Obj] = []
        for task in tasks_of(job):
            for index, name in enumerate(pod_names(job, task)):
                if name in there:
                    kept.append(there.pop(name))
                elif self._may_start(job, task, kept):
                    try:
                        kept.append(self._create(POD, *_body(pod_of(job, task, index))))
                    except Refusal as refusal:
                        self._blocked.add(_key(job))
                        said = f"Error creating pods: [failed to create pod {name}, err: {refusal.message}]"
                        self._tell(job, "FailedCreate", said, warning=True)
                        return None
        for pod in there.values():
            self._remove(POD, pod)
        return kept

    def _may_start(self, job: Obj, task: dict[str, Any], pods: list[Obj]) -> bool:
        """Whether the tasks that a task waits for have as many pods at work as they need."""
        depends = part(task, "dependsOn")
        needed = [
            one for one in tasks_of(job) if one["name"] in (depends.get("name") or ())
        ]
        ready = [
            sum(
                _task(pod) == one["name"] and phase_of(pod) in {"Running", "Succeeded"}
                for pod in pods
            )
            >= least_of(one)
            for one in needed
        ]
        return (
            any(ready)
            if depends.get("iteration") == "any" and len(ready) > 1
            else all(ready)
        )

    def _conclude(self, job: Obj, status: Status, follows: Next) -> None:
        """Store a status with the phase that follows."""
        before, phase = phase_of_job(job), follows(job, status)
        if phase != before:
            now = timestamp()
            status["state"] = {"lastTransitionTime": now, "phase": phase}
            status["conditions"] = [
                *items(status, "conditions"),
                {"lastTransitionTime": now, "status": phase},
            ]
        current = self._store.get(JOB, *_key(job))
        if current is not None:
            write_status(self._store, JOB, current, status, VOLCANO_CONTROLLERS)

    def _expire(self, job: Obj) -> None:
        """Remove a job that has been over for as long as it said."""
        seconds, key = job["spec"].get("ttlSecondsAfterFinished"), _key(job)
        if seconds is None:
            return
        due = self._ends.setdefault(
            key, self._now() + max(0.0, float(seconds) - _age(_ended(job)))
        )
        if due <= self._now():
            del self._ends[key]
            self._sweep(JOB, job)

    def _tell(
        self, job: Obj, reason: str, message: str, *, warning: bool = False
    ) -> None:
        by = VOLCANO_CONTROLLERS
        tell(self._store, job, reason, message, by=by, manager=by, warning=warning)


def owning_job(obj: Obj) -> str:
    """The name of the Volcano job that made something; empty for anything else."""
    owners = obj["metadata"].get("ownerReferences") or ()
    mine = (
        one for one in owners if one.get("controller") and one.get("kind") == JOB.kind
    )
    return next(
        (str(one["name"]) for one in mine if one["apiVersion"] == JOB.api_version), ""
    )


def _key(job: Obj) -> Key:
    return str(job["metadata"]["namespace"]), str(job["metadata"]["name"])


def _body(
    made: tuple[dict[str, Any], dict[str, Any]],
) -> tuple[dict[str, Any], dict[str, Any]]:
    return made[0], {"spec": made[1]}


def _task(pod: Obj) -> str:
    return str(part(dict(pod["metadata"]), "annotations").get(TASK, ""))


def _exit_code(pod: Obj) -> int:
    for one in items(part(dict(pod), "status"), "containerStatuses"):
        return int(part(part(one, "state"), "terminated").get("exitCode", 0))
    return 0


def _ended(job: Obj) -> str:
    return str(part(part(dict(job), "status"), "state")["lastTransitionTime"])


def _age(since: str) -> int:
    return max(
        0, int((datetime.now(UTC) - datetime.fromisoformat(since)).total_seconds())
    )


def _with_counts(status: Status, pods: list[Obj], terminating: int) -> Status:
    """A status with the numbers of pods; none is left out."""
    phases = Counter(phase_of(pod) for pod in pods)
    tasks: dict[str, Counter[str]] = {}
    for pod in pods:
        tasks.setdefault(_task(pod), Counter())[phase_of(pod)] += 1
    rest = {*COUNTS.values(), "unknown", "terminating", "taskStatusCount"}
    found = {word: value for word, value in status.items() if word not in rest}
    found |= {word: phases[phase] for phase, word in COUNTS.items() if phases[phase]}
    if terminating:
        found["terminating"] = terminating
    if tasks:
        found["taskStatusCount"] = {
            name: {"phase": dict(counted)} for name, counted in tasks.items()
        }
    return found
