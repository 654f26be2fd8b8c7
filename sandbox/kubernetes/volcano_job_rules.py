"""What Volcano fills in and refuses of a job by itself, whatever its queue. Pure.

After pkg/webhooks/admission/jobs of volcano-sh/volcano 1.15: mutate/mutate_job.go, validate/admit_job.go and
validate/util.go. Of a task's pod template its containers are checked, and of volumes nothing.
"""

import copy
from collections.abc import Iterator
from typing import Any

from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.names import dns_label, qualified_name
from sandbox.kubernetes.validation_pods import validate_pod_spec

DEFAULT = "default"
RETRIES = 3
PLUGINS = frozenset(
    {"env", "hcclrank", "mpi", "pytorch", "ray", "ssh", "svc", "tensorflow"}
)
# Those that need names of pods.
NAMED = frozenset({"mpi", "pytorch", "tensorflow"})
EVENTS = (
    "*",
    "PodFailed",
    "PodEvicted",
    "PodPending",
    "PodRunning",
    "Unknown",
    "TaskCompleted",
    "TaskFailed",
)
ACTIONS = (
    *("AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition"),
    *("TerminateJob", "CompleteJob", "ResumeJob"),
)
POLICIES = ("Always", "OnFailure", "Never")
FIXED = (
    "job updates may not change fields other than `minAvailable`, `maxRetry`, `tasks[*].replicas under spec`, "
    "`tasks[*].maxRetry under spec`"
)
Object = dict[str, Any]


def job_defaults(job: Object) -> Object:
    """A new job with everything that its webhook fills in."""
    found = copy.deepcopy(job)
    spec = found.setdefault("spec", {})
    spec["queue"] = spec.get("queue") or DEFAULT
    spec["schedulerName"] = spec.get("schedulerName") or "volcano"
    spec["maxRetry"] = spec.get("maxRetry") or RETRIES
    for number, task in enumerate(items(spec, "tasks")):
        task["name"] = task.get("name") or f"{DEFAULT}{number}"
        task.setdefault("minAvailable", task.get("replicas", 0))
        task["maxRetry"] = task.get("maxRetry") or RETRIES
    if not spec.get("minAvailable"):
        spec["minAvailable"] = sum(
            int(one["minAvailable"]) for one in items(spec, "tasks")
        )
    if NAMED & part(spec, "plugins").keys():
        spec["plugins"].setdefault("svc", [])
    if "mpi" in part(spec, "plugins"):
        spec["plugins"].setdefault("ssh", [])
    return found


def job_errors(job: Object) -> Iterator[str]:
    """What is wrong with a new job, in parts of one sentence."""
    spec, name = part(job, "spec"), str(job["metadata"].get("name") or "")
    tasks = items(spec, "tasks")
    if not tasks:
        yield "No task specified in job spec"
        return
    names: set[str] = set()
    for number, task in enumerate(tasks):
        task_name = str(task.get("name") or "")
        if int(task["minAvailable"]) > int(task.get("replicas", 0)):
            yield f" 'minAvailable' is greater than 'replicas' in task: {task_name}, job: {name};"
        if wrong := dns_label(task_name):
            yield f" [{' '.join(wrong)}];"
        if task_name in names:
            yield f" duplicated task name {task_name};"
            break
        names.add(task_name)
        yield from _policies(task, "spec.tasks.policies")
        pod = f"{name}-{task_name}-{number}"
        if wrong := qualified_name(pod):
            yield f"create pod with name {pod} validate failed [{' '.join(wrong)}];"
        yield from _template(task, number)
    if sum(int(one.get("replicas", 0)) for one in tasks) < int(
        spec.get("minAvailable", 0)
    ):
        yield " job 'minAvailable' should not be greater than total replicas in tasks;"
    yield from _policies(spec, "spec.policies")
    for plugin in sorted(part(spec, "plugins").keys() - PLUGINS):
        yield f" unable to find job plugin: {plugin};"


def _template(task: Object, number: int) -> Iterator[str]:
    spec = copy.deepcopy(part(part(task, "template"), "spec"))
    spec.setdefault("restartPolicy", "Always")
    for container in (*items(spec, "containers"), *items(spec, "initContainers")):
        container.setdefault("resources", {})
    causes = validate_pod_spec(spec, "template.spec", POLICIES)
    if causes:
        yield f"spec.task[{number}]." + "".join(
            f"{one['field']}: {one['message']}. " for one in causes
        )


def _policies(owner: Object, path: str) -> Iterator[str]:
    said = _policy_error(items(owner, "policies"), path)
    if said:
        valid = f"valid events are [{' '.join(EVENTS)}], valid actions are [{' '.join(ACTIONS)}]"
        yield f"1 error occurred:\n\t* {said}\n\n {valid};"


def _policy_error(policies: list[Object], path: str) -> str:
    seen: set[str] = set()
    codes: set[int] = set()
    for policy in policies:
        events, code = events_of(policy), policy.get("exitCode")
        if events and code is not None:
            return "must not specify event and exitCode simultaneously"
        if not events and code is None:
            return "either event and exitCode should be specified"
        if events and policy.get("action") not in ACTIONS:
            return f'{path}: Invalid value: "{policy.get("action", "")}": invalid policy action'
        if twice := next((one for one in events if one in seen), ""):
            return f"duplicate event {twice}  across different policy"
        seen |= set(events)
        if code == 0:
            return "0 is not a valid error code"
        if code is not None and code in codes:
            return f"duplicate exitCode {code}"
        codes |= {int(code)} if code is not None else set()
    if "*" in seen and len(seen) > 1:
        return "if there's * here, no other policy should be here"
    return ""


def events_of(policy: Object) -> list[str]:
    """The events that a policy answers."""
    return list(
        dict.fromkeys(
            [
                *(policy.get("events") or ()),
                *([policy["event"]] if policy.get("event") else ()),
            ]
        )
    )


def least_of(task: Object) -> int:
    """How many pods of a task have to run at the least."""
    least = task.get("minAvailable")
    return int(task.get("replicas", 0) if least is None else least)


def change_error(job: Object, before: Object) -> str:
    """Why a job may not become this one; empty where it may."""
    new, old = part(job, "spec"), part(before, "spec")
    tasks = items(new, "tasks")
    for task in tasks:
        if int(task.get("minAvailable", 0)) > int(task.get("replicas", 0)):
            return (
                f"'minAvailable' must be <= 'replicas' in task: {task.get('name', '')}"
            )
    if int(new.get("minAvailable", 0)) > sum(
        int(one.get("replicas", 0)) for one in tasks
    ):
        return "job 'minAvailable' must not be greater than total replicas"
    if len(tasks) != len(items(old, "tasks")):
        return "job updates may not add or remove tasks"
    return "" if _fixed(new) == _fixed(old) else FIXED


def _fixed(spec: Object) -> Object:
    """What of a job may not change."""
    tasks = [
        {
            key: value
            for key, value in task.items()
            if key not in {"replicas", "minAvailable", "maxRetry"}
        }
        for task in items(spec, "tasks")
    ]
    rest = {
        key: value
        for key, value in spec.items()
        if key not in {"minAvailable", "priorityClassName", "maxRetry", "tasks"}
    }
    return {**rest, "tasks": tasks}
