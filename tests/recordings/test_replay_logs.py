"""Logs of pods are read, followed and refused as recorded, step by step."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.recordings.replaying import namespace, steps_of
from tests.recordings.replaying_jobs import JobPlayer

SPACE = "qm-t-logs"
STEPS = [f"step {number} loss={1 / number:.3f}" for number in range(1, 19)] + ["done"]
NOT_ALIKE: Mapping[int, str] = {
    1: "the annotation that has the sandbox run a pod of no controller",
    8: "the recorded node agent could not read the time; the kubelet gives the lines since then",
    9: "asked more than a second after the last line was written",
    23: "the sandbox gives every pod on a node its zone at once; the recorded one was bound before",
}


def pod(
    name: str, *, gpus: int = 0, lines: list[str] | None = None, **more: Any
) -> dict[str, Any]:
    """A pod as the recorder made it; `lines` are half a second apart."""
    asks = {"cpu": "1", "memory": "1Gi"} | (
        {"nvidia.com/gpu": str(gpus)} if gpus else {}
    )
    container = {
        "image": more.get("image", "registry.example.com/train:1"),
        "command": ["python", "train.py"],
        "resources": {"limits": asks, "requests": asks},
    }
    names = more.get("containers", ("main",))
    spec = {
        "containers": [{"name": one, **container} for one in names],
        "restartPolicy": "Never",
    }
    notes = {"test/start-after": "0", **more.get("notes", {})}
    if lines is not None:
        notes |= {"test/log": "\n".join(lines), "test/log-every": "0.5"}
    spec |= {"tolerations": [{"operator": "Exists"}]} if not gpus else {}
    return {"metadata": {"name": name, "annotations": notes}, "spec": spec}


def make(player: JobPlayer) -> None:
    namespace(player, SPACE)
    for one in (
        pod("unbound", gpus=64),
        pod("slow", notes={"test/start-after": "30"}),
        pod(
            "badimage",
            image="registry.example.com/pull-denied:1",
            notes={"test/run-for": "600"},
        ),
        pod("multi", containers=("main", "side")),
    ):
        player.admin("POST", f"/api/v1/namespaces/{SPACE}/pods", one)
    player.pass_time(6)


def run(player: JobPlayer) -> None:
    """Three lines were written when they are read first."""
    body = pod("run", lines=STEPS, notes={"test/run-for": "9"})
    short = pod("short", lines=[*STEPS[:3], "done"], notes={"test/run-for": "1.5"})
    for one in (body, short):
        player.admin("POST", f"/api/v1/namespaces/{SPACE}/pods", one)
    player.pass_time(1.2)


def half_a_second(player: JobPlayer) -> None:
    player.pass_time(0.5)


def short_gone(player: JobPlayer) -> None:
    player.admin("DELETE", f"/api/v1/namespaces/{SPACE}/pods/short")


HOOKS: Mapping[str, Callable[[JobPlayer], None]] = {
    "unbound": make,
    "running": run,
    "container-named": half_a_second,
    "gone": short_gone,
}


def test_logs_are_answered_as_recorded() -> None:
    player = JobPlayer()
    hooks, wrong = dict(HOOKS), list[str]()
    for number, step in enumerate(steps_of("11-pod-logs")):
        if hook := hooks.pop(step["name"], None):
            hook(player)
        lines = player.play_job(step)
        if lines and number not in NOT_ALIKE:
            wrong.append("\n  ".join([f"[{number}] {step['name']}", *lines[:6]]))
        if not lines and number in NOT_ALIKE:
            wrong.append(f"[{number}] {step['name']} matches now: take it off the list")
    assert not wrong, "\n".join(wrong)
    assert not hooks, f"hooks that never ran: {sorted(hooks)}"
