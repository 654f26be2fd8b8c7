"""Jobs in the sandbox wait, run, are stopped and end as recorded with a real Kueue, step by step."""

from collections.abc import Callable, Mapping

import pytest

from sandbox.kubernetes.kinds import KUEUE_GROUP, builtin
from tests.recordings.replaying import steps_of
from tests.recordings.replaying_jobs import JobPlayer

CHECK = builtin(f"{KUEUE_GROUP}/v1beta2", "AdmissionCheck")
Hook = Callable[[JobPlayer], None]
_AHEAD = (
    "recorded before the controllers had come round; the sandbox's are always in time"
)
_GRACE = "pods of the sandbox end at once, without a grace period"
_SAME_SECOND = "of two Jobs of one second the later stood first"
_OVER = "recorded when its time was over and its pods were stopping"

NOT_ALIKE: Mapping[str, Mapping[int, str]] = {
    "10a-job-life": dict.fromkeys((3, 5, 6, 7, 8, 22, 23), _AHEAD),
    "10b-job-waiting": {
        6: _AHEAD,
        7: _AHEAD,
        **dict.fromkeys((49, 50, 51), _SAME_SECOND),
    },
    "10f-preemption-and-stop": {
        1: _AHEAD,
        6: "an event for each victim, and none for the second look",
        **dict.fromkeys((7, 28, 30), _GRACE),
        27: _AHEAD,
    },
    "10c-borrow-reclaim": {
        0: _AHEAD,
        13: _AHEAD,
        21: _GRACE,
        25: "a refusal between two looks",
    },
    "10e-job-variants": {
        13: _GRACE,
        **dict.fromkeys(range(23, 28), _OVER),
        35: "refused pods are tried again when there may be room, not all the time",
    },
}


def starts(player: JobPlayer) -> None:
    player.pass_time(0.1)


def ends(player: JobPlayer) -> None:
    player.pass_time(10)


def some_end(player: JobPlayer) -> None:
    player.pass_time(2.2)


def no_visibility(player: JobPlayer) -> None:
    player.cluster.has_visibility = False


def no_maxtime(player: JobPlayer) -> None:
    """What had run for too long is stopped."""
    path = "/apis/batch/v1/namespaces/qm-t-alpha/jobs"
    for name in ("maxtime", "suspended", "not-managed"):
        player.send(
            "admin", "DELETE", f"{path}/{name}", {"propagationPolicy": "Background"}
        )


def no_jobs(player: JobPlayer) -> None:
    for namespace in ("qm-t-alpha", "qm-t-beta"):
        player.admin(
            "DELETE",
            f"/apis/batch/v1/namespaces/{namespace}/jobs?propagationPolicy=Background",
        )


def no_foreign(player: JobPlayer) -> None:
    path = (
        "/apis/batch/v1/namespaces/qm-t-beta/jobs/foreign?propagationPolicy=Background"
    )
    player.admin("DELETE", path)


def queue_without_borrowing(player: JobPlayer) -> None:
    body = steps_of("10b-job-waiting")[0]["request"]["body"]
    path = f"/apis/{KUEUE_GROUP}/v1beta2/clusterqueues/qm-alpha?fieldManager=quartermaster&force=true"
    player.admin("PATCH", path, body, "application/apply-patch+yaml")


def a_check(player: JobPlayer) -> None:
    no_jobs(player)
    player.admin("DELETE", "/api/v1/namespaces/qm-t-alpha/resourcequotas/small")
    check = player.cluster.store.get(CHECK, "", "approval")
    assert check is not None
    said = {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": "",
        "lastTransitionTime": "x",
    }
    player.cluster.store.put(CHECK, {**check, "status": {"conditions": [said]}})
    player.cluster.controllers.settle()


HOOKS: Mapping[str, Mapping[str, Hook]] = {
    "10a-job-life": {"running-pods": starts, "finished-job": ends, "failed-job": ends},
    "10b-job-waiting": {
        "post-second": starts,
        "gate-opened-pods": starts,
        "visibility-not-registered": no_visibility,
    },
    "10f-preemption-and-stop": {
        "post-urgent": no_foreign,
        "first-readmitted-pods": starts,
    },
    "10c-borrow-reclaim": {
        "queue-alpha": no_jobs,
        "borrowing-pods": starts,
        "delete-clusterqueue-gone": no_jobs,
    },
    "10e-job-variants": {
        "post-suspended": queue_without_borrowing,
        "two-pods-pods": starts,
        "post-not-managed": some_end,
        "namespace-quota": no_maxtime,
        "queue-with-check-status": a_check,
    },
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        ("10a-job-life",),
        ("10b-job-waiting", "10f-preemption-and-stop", "10c-borrow-reclaim"),
        ("10e-job-variants",),
    ],
    ids=["life", "waiting", "variants"],
)
def test_jobs_live_as_recorded(names: tuple[str, ...]) -> None:
    player = JobPlayer()
    wrong: list[str] = []
    for name in names:
        hooks, listed = dict(HOOKS[name]), NOT_ALIKE[name]
        for number, step in enumerate(steps_of(name)):
            if hook := hooks.pop(step["name"], None):
                hook(player)
            lines = player.play_job(step)
            title = f"{name}[{number}] {step['name']}"
            if lines and number not in listed:
                wrong.append("\n  ".join([title, *lines[:6]]))
            if not lines and number in listed:
                wrong.append(f"{title} matches now: take it off the list")
        assert not hooks, f"hooks that never ran: {sorted(hooks)}"
    assert not wrong, "\n".join(wrong)
