"""How well a run used its GPUs on the whole: sums over gaps and attempts, told on page, by API, client and mail."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from connectors.kubernetes import path
from tests import factories
from tests.calling import Caller
from tests.qm.conftest import Signed, signed, terminal
from tests.workloads.conftest import POD, Watched
from tests.workloads.test_gpu_use import busy, copied, measured, measured_at, running
from tests.workloads.test_runs_page import client, page
from workloads.gpu_use.busy import Busy
from workloads.gpu_use.measuring import write_down
from workloads.gpu_use.overall import (
    Overall,
    Sums,
    UseTold,
    overall_of,
    seconds_of_look,
    use_told,
)
from workloads.gpu_use.shares import Share, shares_of
from workloads.models import ClusterObject, GpuUse, Run
from workloads.runs import attempts
from workloads.runs.ending import end
from workloads.runs.notices import ended_message
from workloads.runs.pods import pods_of
from workloads.runs.states import State

__all__ = ["copied", "running", "signed", "terminal"]

NOON = datetime.fromisoformat("2026-11-24T12:00:00+00:00")
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
TEN_GB = 10 * 1024


def overall(
    share: float,
    *,
    minutes: float,
    ran: float | None = None,
    gpus: int = 1,
    peak: int | None = 14_200,
    memory: int | None = 80,
) -> Overall:
    """What is claimed of a run that computed for this share of so many minutes."""
    seconds = minutes * 60
    return overall_of(
        Sums(busy_seconds=share * seconds, measured_seconds=seconds, peak_mib=peak),
        ran=timedelta(minutes=minutes if ran is None else ran),
        gpus=gpus,
        memory_gb=memory,
    )


@pytest.mark.parametrize(
    ("before", "since", "seconds"),
    [
        (None, NOON - HOUR, 0),
        (NOON - MINUTE, NOON - HOUR, 60),
        (NOON - MINUTE, NOON - MINUTE, 60),
        # The attempt began after that look.
        (NOON - MINUTE, NOON - MINUTE / 2, 0),
        (NOON - 5 * MINUTE, NOON - HOUR, 300),
        (NOON - 5 * MINUTE - timedelta(seconds=1), NOON - HOUR, 0),
    ],
)
def test_a_look_counts_since_the_one_before_it_unless_there_was_a_gap(
    before: datetime | None, since: datetime, seconds: float
) -> None:
    assert seconds_of_look(before, running_since=since, now=NOON) == seconds


def test_looks_are_weighted_by_the_time_between_them() -> None:
    sums = Sums().with_look(0.9, None, seconds=0)
    sums = sums.with_look(0.5, 900, seconds=60).with_look(0.2, 700, seconds=240)
    assert sums == Sums(busy_seconds=78, measured_seconds=300, peak_mib=900)
    found = overall_of(sums, ran=5 * MINUTE, gpus=1, memory_gb=80)
    assert found.share == pytest.approx(0.26)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            overall(0.38, minutes=60),
            "38 % busy on average, at most 14 of 80 GB of memory",
        ),
        (
            overall(0.38, minutes=60, gpus=2, peak=14 * 1024 + 1),
            "38 % busy on average, at most 15 of 80 GB of memory on each",
        ),
        (
            overall(1, minutes=5, memory=0),
            "100 % busy on average, at most 14 GB of memory",
        ),
        (overall(0, minutes=45, ran=60, peak=None), "0 % busy on average"),
        (
            overall(0.5, minutes=44, ran=60, peak=None),
            "50 % busy on average, measured for 44 min of 1 h",
        ),
        (overall(0.5, minutes=4.9), ""),
    ],
)
def test_it_is_said_in_words_once_some_minutes_were_measured(
    found: Overall, words: str
) -> None:
    assert found.words == words


def test_of_too_short_a_time_nothing_is_claimed() -> None:
    found = overall(0.5, minutes=4.9)
    assert (found.share, found.peak_gb) == (None, None)
    assert found.measured == 4.9 * MINUTE


def test_the_api_tells_of_now_and_of_the_whole_what_is_known() -> None:
    now, whole = Busy(0.2, NOON, "Held."), overall(0.5, minutes=60)
    said: dict[str, Any] = {
        "overall": "50 % busy on average, at most 14 of 80 GB of memory.",
        "mean_share": 0.5,
        "measured_seconds": 3600,
        "peak_memory_gb": 13.9,
    }
    held: dict[str, Any] = {"share": 0.2, "idle_since": NOON, "words": "Held."}
    assert use_told(now, whole) == UseTold(**held, **said)
    ended = use_told(None, whole)
    assert ended == UseTold(share=None, idle_since=None, words="", **said)
    assert use_told(now, overall(0.5, minutes=4)) == UseTold(
        **held,
        overall="",
        mean_share=None,
        measured_seconds=240,
        peak_memory_gb=None,
    )
    assert use_told(None, overall(0.5, minutes=4)) is None


def test_of_a_slice_its_own_memory_is_told() -> None:
    labels = {"namespace": "team", "pod": "train", "GPU_I_PROFILE": "1g.10gb"}
    samples: list[dict[str, Any]] = [
        {"metric": labels | {"of": of}, "value": [1, value]}
        for of, value in (("average", "0.5"), ("busiest", "0.5"), ("memory", "9728.4"))
    ]
    assert shares_of(samples) == {("team", "train"): Share(0.5, 0.5, 9728)}
    samples[-1]["value"] = [1, "1e30"]
    assert shares_of(samples) == {("team", "train"): Share(0.5, 0.5, 2**31 - 1)}


def look(
    watched: Watched,
    run: Run,
    at: datetime,
    share: float,
    memory: int | None = TEN_GB,
) -> None:
    """All pods of a run are measured at a moment."""
    found = {
        (watched.namespace, pod.name): Share(share, share, memory)
        for pod in pods_of(run)
    }
    write_down(watched.cluster, found, now=at)


def uses(watched: Watched, run: Run, text: str) -> None:
    """Each GPU of the run's pod uses so many MiB of its memory."""
    [pod] = pods_of(run)
    annotations = {"metadata": {"annotations": {"test/gpu-memory": text}}}
    watched.kubernetes.write(
        "PATCH", path(POD, watched.namespace, pod.name), annotations
    )


def began(run: Run, at: datetime) -> datetime:
    """The run was submitted, and its attempt began, at a moment."""
    Run.objects.update(created_at=at, started_at=at, running_since=at)
    run.run_attempts.update(started_at=at)
    return at


def sums() -> Sums:
    return GpuUse.objects.get().sums


@pytest.mark.slow
def test_a_gap_counts_as_not_measured(watched: Watched, running: Run) -> None:
    start = began(running, timezone.now() - HOUR)
    look(watched, running, start, 1)
    look(watched, running, start + MINUTE, 0.5)
    look(watched, running, start + 3 * MINUTE, 0.25)
    assert sums() == Sums(busy_seconds=60, measured_seconds=180, peak_mib=TEN_GB)
    look(watched, running, start + 10 * MINUTE, 1)
    assert sums().measured_seconds == 180
    look(watched, running, start + 11 * MINUTE, 1)
    assert sums() == Sums(busy_seconds=120, measured_seconds=240, peak_mib=TEN_GB)


@pytest.mark.slow
def test_a_round_that_ends_late_adds_nothing(watched: Watched, running: Run) -> None:
    start = began(running, timezone.now() - HOUR)
    for minutes in (0, 2, 1):
        look(watched, running, start + minutes * MINUTE, 0.5)
    assert sums().measured_seconds == 120


@pytest.mark.slow
def test_two_attempts_count_together_and_the_time_between_them_does_not(
    watched: Watched, running: Run
) -> None:
    start = began(running, timezone.now() - HOUR)
    running.refresh_from_db()
    look(watched, running, start, 0.5, 2 * TEN_GB)
    look(watched, running, start + 3 * MINUTE, 0.5)
    stopped = start + 4 * MINUTE
    attempts.finish(running, at=stopped, why="It made room.", is_sent_back=True)
    again = stopped + timedelta(seconds=30)
    attempts.begin(running, at=again, admitted_at=again)
    look(watched, running, again + MINUTE / 2, 1)
    assert sums().measured_seconds == 180
    look(watched, running, again + MINUTE / 2 + 3 * MINUTE, 1)
    assert sums() == Sums(busy_seconds=270, measured_seconds=360, peak_mib=2 * TEN_GB)


@pytest.mark.slow
def test_a_look_that_misses_a_pod_adds_nothing_to_the_whole(
    watched: Watched, running: Run
) -> None:
    start = began(running, timezone.now() - HOUR)
    look(watched, running, start, 0.5)
    [pod] = pods_of(running)
    other = ClusterObject.objects.get(kind="Pod", name=pod.name)
    other.pk, other.name = None, "on-a-node-without-exporter"
    other.save(force_insert=True)
    found = {(watched.namespace, pod.name): Share(1, 1, 2 * TEN_GB)}

    write_down(watched.cluster, found, now=start + MINUTE)

    assert sums() == Sums(peak_mib=TEN_GB)
    # The memory of one pod alone says nothing of the run's.
    found[watched.namespace, other.name] = Share(0, 0)
    write_down(watched.cluster, found, now=start + 2 * MINUTE)
    assert sums() == Sums(busy_seconds=30, measured_seconds=60, peak_mib=TEN_GB)


def hour_of(watched: Watched, run: Run, *, share: float = 0.375, memory: str) -> None:
    """An hour of the run is measured by its cluster's Prometheus, every third minute."""
    measured(watched)
    busy(watched, run, share)
    uses(watched, run, memory)
    start = began(run, timezone.now() - HOUR)
    for minutes in range(0, 61, 3):
        measured_at(start + minutes * MINUTE)


def told(watched: Watched, run: Run) -> dict[str, Any]:
    """What the API says of the run's GPUs, in the list as alone."""
    caller = Caller(watched.ada)
    one: dict[str, Any] = caller.get(f"runs/{run.pk}/").json()["gpu_use"]
    [listed] = caller.get("runs/").json()["results"]
    assert listed["gpu_use"] == one
    return one


WORDS = "38 % busy on average, at most 14 of 80 GB of memory on each"


@pytest.mark.slow
def test_while_it_runs_and_after_its_end_page_api_and_mail_tell_it(
    watched: Watched, running: Run
) -> None:
    hour_of(watched, running, memory="1024 14000")
    whole = {
        "overall": f"{WORDS}.",
        "mean_share": 0.375,
        "measured_seconds": 3600,
        "peak_memory_gb": 13.7,
    }
    ada = client(watched.ada)
    shown = f"2 A100 {WORDS}"
    assert told(watched, running) == {
        "share": 0.375,
        "idle_since": None,
        "words": "38 % busy when last measured.",
        **whole,
    }
    assert shown in page(ada.get(f"/runs/{running.pk}")).words

    end(running.pk, State.FINISHED, now=timezone.now())

    assert told(watched, running) == {
        "share": None,
        "idle_since": None,
        "words": "",
        **whole,
    }
    assert shown in page(ada.get(f"/runs/{running.pk}")).words
    running.refresh_from_db()
    facts = dict(ended_message(running, now=timezone.now()).facts)
    assert facts["GPU use"] == WORDS


@pytest.mark.slow
def test_without_a_metric_of_memory_only_the_share_is_claimed(
    watched: Watched, running: Run
) -> None:
    hour_of(watched, running, memory="")
    found = told(watched, running)
    assert found["overall"] == "38 % busy on average."
    assert (found["mean_share"], found["peak_memory_gb"]) == (0.375, None)


@pytest.mark.slow
def test_a_run_on_a_slice_is_told_against_the_slice(
    watched: Watched, running: Run
) -> None:
    small = factories.flavor(
        watched.cluster, "a100-1g", memory_gb=10, resource="nvidia.com/mig-1g.10gb"
    )
    Run.objects.update(flavor=small, gpus=1)
    hour_of(watched, running, memory="8900")
    assert told(watched, running)["overall"] == (
        "38 % busy on average, at most 9 of 10 GB of memory."
    )


@pytest.mark.slow
def test_without_a_prometheus_nothing_is_claimed_after_the_end(
    watched: Watched, running: Run
) -> None:
    began(running, timezone.now() - HOUR)
    end(running.pk, State.FINISHED, now=timezone.now())
    running.refresh_from_db()
    assert told(watched, running) is None
    assert (
        "on average" not in page(client(watched.ada).get(f"/runs/{running.pk}")).words
    )
    assert "GPU use" not in dict(ended_message(running, now=timezone.now()).facts)


@pytest.mark.slow
def test_the_client_shows_it_while_it_runs_and_after_its_end(
    watched: Watched, running: Run, signed: Signed
) -> None:
    hour_of(watched, running, memory="1024 14000")

    def line() -> str:
        shown = signed.terminal("show", str(running.pk)).stdout
        [found] = [one for one in shown.splitlines() if one.startswith("GPU use")]
        return found.removeprefix("GPU use").strip()

    assert line() == f"38 % busy when last measured. {WORDS}."
    end(running.pk, State.FINISHED, now=timezone.now())
    assert line() == f"{WORDS}."
