"""Volcano's queue controller: the states of queues, and what commands ask of queues and jobs.

After pkg/controllers/queue (queue_controller_action.go, state/*.go) and job_controller_handler.go of volcano-sh/volcano
1.15. A queue that somebody writes `Closed` into, or that a Command closes, is `Closing` while groups are in it. How
many groups a queue has are metrics in that release: its status does not say it.
"""

from collections.abc import Callable
from typing import Any

from sandbox.kubernetes.causes import part
from sandbox.kubernetes.events import VOLCANO_CONTROLLERS, tell
from sandbox.kubernetes.kinds import VOLCANO_BUS, VOLCANO_SCHEDULING, Kind, builtin
from sandbox.kubernetes.statuses import write_object, write_status
from sandbox.kubernetes.store import Change, Key, Obj, Store
from sandbox.kubernetes.volcano_webhook import (
    GROUP,
    JOB,
    OPEN,
    QUEUE,
    ROOT,
    children_of,
)

COMMAND = builtin(f"{VOLCANO_BUS}/v1alpha1", "Command")
CLOSED, CLOSING, CLOSE, REOPEN = "Closed", "Closing", "CloseQueue", "OpenQueue"
BY_PARENT = "volcano.sh/closed-by-parent"


class VolcanoQueues:
    """Keeps the queues of one store; `run` works through those that changed."""

    def __init__(
        self,
        store: Store,
        remove: Callable[[Kind, Obj], None],
        ask: Callable[[Key, str], None],
    ) -> None:
        self._store = store
        self._remove = remove
        # What a command asks of a job.
        self._ask = ask
        self._due: dict[str, None] = {}
        self._commands: list[Key] = []

    def react(self, change: Change) -> None:
        """Remember a queue that changed, or whose groups did, and a command."""
        match change.resource:
            case (group, "queues") if group == VOLCANO_SCHEDULING:
                self._due |= dict.fromkeys(
                    [change.key[1], *children_of(self._store, change.key[1])]
                )
            case (_, "podgroups"):
                for entry in (change.before, change.after):
                    if entry is not None:
                        self._due[
                            str(part(dict(entry.obj), "spec").get("queue") or "")
                        ] = None
            case (group, "commands") if group == VOLCANO_BUS and not change.removed:
                self._commands.append(change.key)

    def resume(self) -> None:
        """Look at every queue again after the store was filled from a snapshot."""
        self._due = {
            str(one["metadata"]["name"]): None for one in self._store.objects(QUEUE)
        }

    def run(self) -> bool:
        """Work through what changed; True when there was anything."""
        due, self._due = self._due, {}
        commands, self._commands = self._commands, []
        for key in commands:
            command = self._store.get(COMMAND, *key)
            if command is not None:
                self._remove(COMMAND, command)
                self._obey(key[0], command)
        for name in due:
            queue = self._store.get(QUEUE, "", name)
            if queue is not None:
                self._sync(queue)
        return bool(due or commands)

    def _obey(self, namespace: str, command: Obj) -> None:
        target, action = part(dict(command), "target"), str(command.get("action") or "")
        if (
            target.get("kind") == JOB.kind
            and target.get("apiVersion") == JOB.api_version
        ):
            self._ask((namespace, str(target.get("name"))), action)
        queue = self._store.get(QUEUE, "", str(target.get("name")))
        if (
            queue is None
            or target.get("kind") != QUEUE.kind
            or action not in {CLOSE, REOPEN}
        ):
            return
        name, wanted = (
            str(queue["metadata"]["name"]),
            CLOSED if action == CLOSE else OPEN,
        )
        if (name == ROOT and action == CLOSE) or _state(queue) == wanted:
            return
        self._write(queue, {"state": wanted})
        word = "Close" if action == CLOSE else "Open"
        by = VOLCANO_CONTROLLERS
        tell(self._store, queue, action, f"{word} queue succeed", by=by, manager=by)

    def _sync(self, queue: Obj) -> None:
        name, spec = str(queue["metadata"]["name"]), part(dict(queue), "spec")
        if name != ROOT and not spec.get("parent"):
            adopted = {**queue, "spec": {**spec, "parent": ROOT}}
            write_object(self._store, QUEUE, queue, adopted, VOLCANO_CONTROLLERS)
            return
        state = _state(queue) or OPEN
        if state in {CLOSED, CLOSING}:
            has_groups = any(
                one["spec"].get("queue") == name for one in self._store.objects(GROUP)
            )
            state = CLOSING if has_groups else CLOSED
        self._write(queue, {"state": state})
        self._follow_parent(name, str(spec.get("parent") or ""), state)

    def _follow_parent(self, name: str, parent: str, state: str) -> None:
        """A queue is closed with the queue over it, and opened again with it."""
        over, queue = (
            self._store.get(QUEUE, "", parent),
            self._store.get(QUEUE, "", name),
        )
        if over is None or queue is None:
            return
        annotations = part(dict(queue["metadata"]), "annotations")
        if _state(over) in {CLOSED, CLOSING} and state == OPEN:
            marked, wanted = "true", CLOSED
        elif (
            _state(over) == OPEN
            and state != OPEN
            and annotations.get(BY_PARENT) == "true"
        ):
            marked, wanted = "false", OPEN
        else:
            return
        metadata = {
            **queue["metadata"],
            "annotations": {**annotations, BY_PARENT: marked},
        }
        write_object(
            self._store,
            QUEUE,
            queue,
            {**queue, "metadata": metadata},
            VOLCANO_CONTROLLERS,
        )
        self._write(self._store.get(QUEUE, "", name) or queue, {"state": wanted})

    def _write(self, queue: Obj, changes: dict[str, Any]) -> None:
        status = {**part(dict(queue), "status"), **changes}
        write_status(self._store, QUEUE, queue, status, VOLCANO_CONTROLLERS)


def _state(queue: Obj) -> str:
    return str(part(dict(queue), "status").get("state") or "")
