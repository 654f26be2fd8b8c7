"""The JobSet controller: a JobSet's Jobs and Service, its restarts, its end, and its removal some time after."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sandbox.kubernetes.admission import Admission
from sandbox.kubernetes.causes import part
from sandbox.kubernetes.conditions import found, holds, status_of, told
from sandbox.kubernetes.creating import create, owned_by
from sandbox.kubernetes.events import tell
from sandbox.kubernetes.identity import Identity
from sandbox.kubernetes.job_webhook import JOBSET, owning_set
from sandbox.kubernetes.jobs import JOB
from sandbox.kubernetes.jobset_children import (
    Family,
    children,
    family_of,
    replicated_jobs,
    resumed,
    service_of,
    statuses_of,
    subdomain_of,
)
from sandbox.kubernetes.jobset_policies import (
    COMPLETED,
    FAILED,
    RESTART,
    Decision,
    decide,
    has_started,
    is_in_order,
    may_start,
)
from sandbox.kubernetes.kinds import JOBSET_GROUP, Kind, builtin
from sandbox.kubernetes.status import Refusal
from sandbox.kubernetes.statuses import write_object, write_status
from sandbox.kubernetes.store import Change, Key, Obj, Store

MANAGER, NAME = "manager", "jobset"
SERVICE = builtin("v1", "Service")
CONTROLLER = Identity(
    "system:serviceaccount:jobset-system:jobset-controller-manager",
    ("system:serviceaccounts", "system:serviceaccounts:jobset-system"),
)
OURS = "jobset.sigs.k8s.io/jobset-controller"
IN_PROGRESS = (
    *("StartupPolicyInProgress", True),
    *("InOrderStartupPolicyInProgress", "in order startup policy is in progress"),
)
ALL_STARTED = (
    *("StartupPolicyCompleted", True),
    *("InOrderStartupPolicyCompleted", "in order startup policy has completed"),
)
SUSPENDED = ("Suspended", True, "SuspendedJobs", "jobset is suspended")
RESUMED = ("Suspended", False, "ResumeJobs", "jobset is resumed")
Status = dict[str, Any]
# Something goes once all that belongs to it has gone.
Remove = Callable[[Kind, Obj], None]


class JobSets:
    """Keeps the JobSets of one store going; `run` works through those that changed."""

    def __init__(
        self,
        store: Store,
        admission: Admission,
        now: Callable[[], float],
        remove: Remove,
    ) -> None:
        self.is_running = True
        self._store = store
        self._admission = admission
        self._now = now
        self._remove = remove
        self._due: dict[Key, None] = {}
        self._blocked: set[Key] = set()
        self._ends: dict[Key, float] = {}

    @property
    def next_due(self) -> float | None:
        """When a JobSet that is over goes next."""
        return min(self._ends.values(), default=None)

    def react(self, change: Change) -> None:
        """Remember a JobSet that changed, or whose Jobs did, or whose namespace may have room again."""
        match change.resource:
            case (group, "jobsets") if group == JOBSET_GROUP:
                self._due[change.key] = None
                if change.removed:
                    self._ends.pop(change.key, None)
            case ("batch", "jobs") | ("", "services") if name := owning_set(
                change.after.obj
            ):
                self._due[change.key[0], name] = None
            case ("", "resourcequotas"):
                self._due |= dict.fromkeys(
                    key for key in self._blocked if key[0] == change.key[0]
                )
            case ("apps", "deployments"):
                # Kueue, which has a say in each new Job, may be back.
                self._due |= dict.fromkeys(self._blocked)

    def resume(self) -> None:
        """Look at every JobSet again after the store was filled from a snapshot."""
        self._ends.clear()
        for jobset in self._store.objects(JOBSET):
            self._due[jobset["metadata"]["namespace"], jobset["metadata"]["name"]] = (
                None
            )

    def run(self) -> bool:
        """Work through what changed; True when there was anything."""
        over = [key for key, moment in self._ends.items() if moment <= self._now()]
        due, self._due = self._due | dict.fromkeys(over), {}
        for key in due:
            jobset = self._store.get(JOBSET, *key)
            if jobset is not None and self._is_ours(jobset):
                self._blocked.discard(key)
                self._reconcile(key, jobset)
        return bool(due)

    def _is_ours(self, jobset: Obj) -> bool:
        mine = jobset["spec"].get("managedBy", OURS) == OURS
        return (
            self.is_running and mine and "deletionTimestamp" not in jobset["metadata"]
        )

    def _reconcile(self, key: Key, jobset: Obj) -> None:
        status = status_of(jobset)
        owned = [
            job
            for job in self._store.objects(JOB, key[0])
            if any(
                one["uid"] == jobset["metadata"]["uid"]
                for one in job["metadata"].get("ownerReferences") or ()
            )
        ]
        family = family_of(jobset, owned)
        status["replicatedJobsStatus"] = statuses_of(jobset, family)
        if holds(jobset, COMPLETED) or holds(jobset, FAILED):
            self._drop(family.active)
            self._expire(key, jobset)
        else:
            self._drop(family.previous)
            if decision := decide(jobset, family):
                self._conclude(jobset, status, decision)
            else:
                self._go_on(key, jobset, status, family)
        current = self._store.get(JOBSET, *key)
        if current is not None:
            write_status(self._store, JOBSET, current, status, MANAGER)

    def _drop(self, jobs: list[Obj]) -> None:
        for job in jobs:
            self._remove(JOB, job)

    def _expire(self, key: Key, jobset: Obj) -> None:
        """Remove a JobSet that has been over for as long as it said."""
        seconds = jobset["spec"].get("ttlSecondsAfterFinished")
        if seconds is None:
            return
        ended = found(jobset, COMPLETED if holds(jobset, COMPLETED) else FAILED)[
            "lastTransitionTime"
        ]
        passed = (
            datetime.now(UTC) - datetime.fromisoformat(str(ended))
        ).total_seconds()
        due = self._ends.setdefault(
            key, self._now() + max(0.0, float(seconds) - passed)
        )
        if due <= self._now():
            del self._ends[key]
            self._remove(JOBSET, jobset)

    def _conclude(self, jobset: Obj, status: Status, decision: Decision) -> None:
        if decision.outcome != RESTART:
            self._say(
                jobset,
                status,
                decision.outcome,
                True,
                decision.reason,
                decision.message,
            )
            status["terminalState"] = decision.outcome
            return
        status["restarts"] = int(status.get("restarts") or 0) + 1
        if decision.counts:
            status["restartsCountTowardsMax"] = (
                int(status.get("restartsCountTowardsMax") or 0) + 1
            )
        tell(
            self._store,
            jobset,
            decision.reason,
            decision.message,
            by=NAME,
            warning=True,
        )

    def _go_on(self, key: Key, jobset: Obj, status: Status, family: Family) -> None:
        """Make the Jobs that are missing and may start, and have them run or wait as the JobSet does."""
        if not self._serve(key, jobset):
            return
        suspended, statuses = (
            bool(jobset["spec"].get("suspend")),
            status["replicatedJobsStatus"],
        )
        one_by_one = is_in_order(jobset) and not suspended
        for replicated in replicated_jobs(jobset):
            if not may_start(jobset, replicated, statuses):
                continue
            if one_by_one and has_started(replicated, statuses):
                continue
            if not self._make(key, jobset, replicated, family):
                return
            for job in family.active_of(str(replicated["name"])):
                self._steer(
                    job,
                    part(part(replicated["template"], "spec"), "template"),
                    suspended,
                )
            if one_by_one:
                self._say(jobset, status, *IN_PROGRESS)
                return
        if one_by_one:
            self._say(jobset, status, *ALL_STARTED)
            _unsay(status, IN_PROGRESS[0])
        if suspended or holds(jobset, "Suspended"):
            self._say(jobset, status, *(SUSPENDED if suspended else RESUMED))

    def _serve(self, key: Key, jobset: Obj) -> bool:
        """Make the Service of the pods' names where there is to be one; False where that is refused."""
        name = subdomain_of(jobset)
        if not name or self._store.get(SERVICE, key[0], name) is not None:
            return True
        metadata = {
            "name": name,
            "namespace": key[0],
            "ownerReferences": [owned_by(jobset)],
        }
        body = {"spec": service_of(jobset)}
        return self._create(
            key,
            jobset,
            SERVICE,
            {"metadata": metadata, **body},
            "HeadlessServiceCreationFailed",
        )

    def _make(
        self, key: Key, jobset: Obj, replicated: dict[str, Any], family: Family
    ) -> bool:
        """Make the Jobs of an entry whose names are free; False where one is refused."""
        strategy = part(jobset["spec"], "failurePolicy").get("restartStrategy")
        if family.previous and strategy == "BlockingRecreate":
            return True
        missing = (
            job
            for job in children(jobset, replicated)
            if job["metadata"]["name"] not in family.names
        )
        return all(
            self._create(key, jobset, JOB, job, "JobCreationFailed") for job in missing
        )

    def _create(
        self, key: Key, jobset: Obj, kind: Kind, made: dict[str, Any], failure: str
    ) -> bool:
        try:
            body = {"spec": made["spec"]}
            create(
                self._store,
                self._admission,
                kind,
                made["metadata"],
                body,
                CONTROLLER,
                MANAGER,
            )
        except Refusal as refusal:
            self._blocked.add(key)
            name = made["metadata"]["name"]
            said = f'job "{name}" creation failed with error: ' if kind is JOB else ""
            tell(
                self._store,
                jobset,
                failure,
                f"{said}{refusal.message}",
                by=NAME,
                warning=True,
            )
            return False
        return True

    def _steer(self, job: Obj, template: dict[str, Any], suspended: bool) -> None:
        if bool(job["spec"].get("suspend")) == suspended:
            return
        stopped = {**job, "spec": {**job["spec"], "suspend": True}}
        write_object(
            self._store,
            JOB,
            job,
            stopped if suspended else resumed(job, template),
            MANAGER,
        )

    def _say(
        self,
        jobset: Obj,
        status: Status,
        word: str,
        true: bool,
        reason: str,
        message: str,
    ) -> None:
        """Set a condition, and tell of it where it is news."""
        known = found({"status": status}, word)
        if known.get("status") == ("True" if true else "False"):
            return
        told(status, jobset, word, true, reason, message, observed=False)
        tell(self._store, jobset, reason, message, by=NAME, warning=word == FAILED)


def _unsay(status: Status, word: str) -> None:
    """What was said is not so any more; its words stay."""
    status["conditions"] = [
        {**one, "status": "False"} if one["type"] == word else one
        for one in status.get("conditions") or ()
    ]
