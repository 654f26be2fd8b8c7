"""The node agent: what it writes into a pod that starts, cannot start or ends, and the events it leaves.

A container waits for the Secrets that its variables need. An image whose name has ``pull-denied`` in it cannot be
pulled. A container that prepares a pod fails where the last word of its command, a Git ref, has ``no-such-ref`` in it.
The pod of a notebook server has an address that is reached on this machine: whoever serves the cluster may answer
there.
"""

from typing import Any

from sandbox.kubernetes import commands
from sandbox.kubernetes.causes import items, part
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.events import KUBELET, tell
from sandbox.kubernetes.kinds import builtin
from sandbox.kubernetes.log_lines import given_lines
from sandbox.kubernetes.store import Obj, Store

DENIED, BACK_OFF_SECONDS = "pull-denied", 5.0
NO_REF = "no-such-ref"
NO_CONFIG, SECRET = "CreateContainerConfigError", builtin("v1", "Secret")
DIGEST = "a" * 64
# As a container ends that is killed.
KILLED = 137
TOO_LONG = "DeadlineExceeded"
DEADLINE = "Pod was active on the node longer than the specified deadline"
PULL_FAILED, BACKING_OFF = "ErrImagePull", "ImagePullBackOff"
_ACCESS = (
    "pull access denied, repository does not exist or may require authorization: "
    "authorization failed: no basic auth credentials"
)
# By this KubeSpawner knows its pods.
NOTEBOOK = ("component", "singleuser-server")
Status = dict[str, Any]


def is_notebook(pod: Obj) -> bool:
    """Whether KubeSpawner made a pod, for a notebook server."""
    label, value = NOTEBOOK
    return (pod["metadata"].get("labels") or {}).get(label) == value


class Kubelet:
    """Starts and ends the containers of pods, in their statuses only."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def start(self, status: Status, pod: Obj) -> bool:
        """Start the containers, in place; False where an image cannot be pulled, or what prepares the pod fails."""
        if lacking := self._without_secrets(pod):
            self._wait_for_secrets(status, pod, lacking)
            return False
        unfetched = next(
            (one for one in items(pod["spec"], "initContainers") if _missing(one)), None
        )
        if unfetched is not None:
            _fail_before(status, pod, unfetched)
            return False
        images = [str(one["image"]) for one in pod["spec"]["containers"]]
        denied = next((one for one in images if DENIED in one), "")
        if denied:
            self._fail_to_pull(status, pod, denied)
            return False
        _run(status, pod)
        for image in images:
            self._tell(
                pod, "Pulled", f'Container image "{image}" already present on machine'
            )
            self._tell(pod, "Created", "Container created")
            self._tell(pod, "Started", "Container started")
        return True

    @staticmethod
    def backs_off(status: Status) -> bool:
        """Whether a start has just failed, and is tried again."""
        states = [
            part(one, "state")
            for word in ("initContainerStatuses", "containerStatuses")
            for one in items(status, word)
        ]
        return any(
            part(one, "waiting").get("reason") in (PULL_FAILED, NO_CONFIG)
            for one in states
        )

    @staticmethod
    def end(status: Status, pod: Obj) -> None:
        """End the containers as the annotations ``test/exit-code`` and ``test/exit-reason`` or their command say."""
        notes = part(part(dict(pod), "metadata"), "annotations")
        told = str(notes.get("test/exit-code", ""))
        code = int(told) if told.isdecimal() else commands.exit_code(pod)
        _end(status, code, reason=notes.get("test/exit-reason", "Error"))
        if code:
            _leave_words(status, pod)

    def stop(self, status: Status, pod: Obj) -> None:
        """End a pod that ran for longer than it may, in place; its containers are killed."""
        _end(status, KILLED)
        status |= {"reason": TOO_LONG, "message": DEADLINE}
        self._tell(pod, TOO_LONG, DEADLINE)

    def kill(self, pod: Obj) -> None:
        """Say that the containers of a pod that goes are stopped."""
        for one in pod["spec"]["containers"]:
            self._tell(pod, "Killing", f"Stopping container {one['name']}")

    def _without_secrets(self, pod: Obj) -> dict[str, str]:
        """Of each container that needs a Secret which is not there, or lacks its key, what the kubelet says."""
        found: dict[str, str] = {}
        for container in _containers(pod):
            for one in items(container, "env"):
                chosen = part(part(one, "valueFrom"), "secretKeyRef")
                if chosen and (why := self._lacks(pod, chosen)):
                    found.setdefault(str(container["name"]), why)
        return found

    def _lacks(self, pod: Obj, chosen: dict[str, Any]) -> str:
        if chosen.get("optional"):
            return ""
        namespace = str(pod["metadata"]["namespace"])
        name, key = str(chosen["name"]), str(chosen["key"])
        secret = self._store.get(SECRET, namespace, name)
        if secret is None:
            return f'secret "{name}" not found'
        if key in {**part(secret, "data"), **part(secret, "stringData")}:
            return ""
        return f"couldn't find key {key} in Secret {namespace}/{name}"

    def _wait_for_secrets(
        self, status: Status, pod: Obj, lacking: dict[str, str]
    ) -> None:
        """Have the containers wait for their configuration; the kubelet tries again."""
        for word, containers in (
            ("initContainerStatuses", items(pod["spec"], "initContainers")),
            ("containerStatuses", items(pod["spec"], "containers")),
        ):
            if containers:
                status[word] = [
                    {**_waiting(one), "state": {"waiting": _why_not(one, lacking)}}
                    for one in containers
                ]
        status["startTime"] = status.get("startTime") or timestamp()
        why = next(iter(lacking.values()))
        self._tell(pod, "Failed", f"Error: {why}", warning=True)

    def _fail_to_pull(self, status: Status, pod: Obj, image: str) -> None:
        again = self.backs_off(status)
        reason = BACKING_OFF if again else PULL_FAILED
        cause = f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": {_ACCESS}'
        message = (
            f'Back-off pulling image "{image}": ErrImagePull: {cause}'
            if again
            else cause
        )
        status["containerStatuses"] = [
            {
                **_waiting(one),
                "state": {"waiting": {"reason": reason, "message": message}},
            }
            for one in pod["spec"]["containers"]
        ]
        status["startTime"] = status.get("startTime") or timestamp()
        if again:
            self._tell(pod, "BackOff", f'Back-off pulling image "{image}"')
        else:
            self._tell(pod, "Pulling", f'Pulling image "{image}"')
            self._tell(
                pod, "Failed", f'Failed to pull image "{image}": {cause}', warning=True
            )
        self._tell(pod, "Failed", f"Error: {reason}", warning=True)

    def _tell(
        self, pod: Obj, reason: str, message: str, *, warning: bool = False
    ) -> None:
        node = str(pod["spec"]["nodeName"])
        tell(
            self._store,
            pod,
            reason,
            message,
            by=KUBELET,
            manager=KUBELET,
            warning=warning,
            host=node,
        )


def _containers(pod: Obj) -> list[Obj]:
    return [*items(pod["spec"], "initContainers"), *items(pod["spec"], "containers")]


def _why_not(container: Obj, lacking: dict[str, str]) -> dict[str, str]:
    why = lacking.get(str(container["name"]))
    if why is None:
        return {"reason": "PodInitializing"}
    return {"reason": NO_CONFIG, "message": why}


def _waiting(container: Obj) -> dict[str, Any]:
    return {
        "name": container["name"],
        "lastState": {},
        "ready": False,
        "restartCount": 0,
        "image": container["image"],
        "imageID": "",
        "started": False,
    }


def _missing(container: Obj) -> str:
    """The Git ref that a container would fetch, where the sandbox has none of that name."""
    words = [str(one) for one in container.get("command") or ("",)]
    return words[-1] if NO_REF in words[-1] else ""


def _fail_before(status: Status, pod: Obj, container: Obj) -> None:
    """End a pod whose preparation failed; what git wrote is its message where the container says so."""
    now, uid = timestamp(), pod["metadata"]["uid"].replace("-", "")
    url, ref = [str(one) for one in container["command"]][-2:]
    ended = {"exitCode": 1, "reason": "Error", "startedAt": now, "finishedAt": now}
    if container.get("terminationMessagePolicy") == "FallbackToLogsOnError":
        ended["message"] = (
            f"fatal: couldn't find remote ref {ref}\nNot fetched: {ref} of {url}\n"
        )
    first = _waiting(container) | {
        "state": {"terminated": {**ended, "containerID": f"containerd://{uid}{uid}"}}
    }
    rest = [
        {**_waiting(one), "state": {"waiting": {"reason": "PodInitializing"}}}
        for one in pod["spec"]["containers"]
    ]
    status |= {"phase": "Failed", "startTime": now}
    status |= {"initContainerStatuses": [first], "containerStatuses": rest}
    status["conditions"] = _conditions(status, "False", "PodFailed")


def _run(status: Status, pod: Obj) -> None:
    now, uid = timestamp(), pod["metadata"]["uid"].replace("-", "")
    address = _address(pod, uid)
    status |= {
        "phase": "Running",
        "hostIP": "127.0.0.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now,
    }
    status["containerStatuses"] = [
        {
            "name": one["name"],
            "state": {"running": {"startedAt": now}},
            "lastState": {},
            "ready": True,
            "restartCount": 0,
            "image": one["image"],
            "imageID": f"{one['image'].partition(':')[0]}@sha256:{DIGEST}",
            "containerID": f"containerd://{uid}{uid}",
            "started": True,
        }
        for one in pod["spec"]["containers"]
    ]
    status["conditions"] = _conditions(status, "True", "")


def _address(pod: Obj, uid: str) -> str:
    """The pod's own; of a notebook one that loopback reaches, and that no other pod has by chance."""
    parts = [int(uid[at : at + 2], 16) for at in (0, 2, 4)]
    if is_notebook(pod):
        # 127.0.0.0/16 is for everything else; addresses that end in 0 or 255 are for networks.
        return f"127.{1 + parts[0] % 254}.{parts[1]}.{1 + parts[2] % 254}"
    return f"10.244.{parts[0]}.{parts[1]}"


def _end(status: Status, code: int, *, reason: str = "Error") -> None:
    now = timestamp()
    status["phase"] = "Failed" if code else "Succeeded"
    status["containerStatuses"] = [
        {
            **one,
            "ready": False,
            "started": False,
            "state": {
                "terminated": {
                    "exitCode": code,
                    "reason": reason if code else "Completed",
                    "finishedAt": now,
                    "startedAt": one["state"]["running"]["startedAt"],
                    "containerID": one["containerID"],
                }
            },
        }
        for one in status["containerStatuses"]
    ]
    status["conditions"] = _conditions(
        status, "False", "PodFailed" if code else "PodCompleted"
    )


def _leave_words(status: Status, pod: Obj) -> None:
    """Keep what the containers wrote last, where they say so and wrote anything."""
    words = commands.last_words(given_lines(pod))
    policies = {
        one["name"]: one.get("terminationMessagePolicy")
        for one in pod["spec"]["containers"]
    }
    for one in status["containerStatuses"]:
        if words and policies[one["name"]] == "FallbackToLogsOnError":
            one["state"]["terminated"]["message"] = words


def _conditions(status: Status, ready: str, reason: str) -> list[dict[str, Any]]:
    said: dict[str, Any] = {"lastProbeTime": None, "lastTransitionTime": timestamp()}
    steady = [
        {"type": word, "status": "True", **said}
        for word in ("PodReadyToStartContainers", "Initialized")
    ]
    why = {"reason": reason} if reason else {}
    moving = [
        {"type": word, "status": ready, **said, **why}
        for word in ("Ready", "ContainersReady")
    ]
    return [
        *steady,
        *moving,
        *(one for one in items(status, "conditions") if one["type"] == "PodScheduled"),
    ]
