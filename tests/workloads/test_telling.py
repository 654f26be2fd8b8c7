"""When a run's end is told: at once, or as soon as its log was read that says why it failed."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from audit import clock
from notices.channels.events import WebhookEvent
from notices.kinds import NoticeKind
from notices.models import Notice
from tests import factories
from tests.scene import scene as make
from tests.subscribed import last, subscribe, told
from tests.workloads.conftest import Watched
from tests.workloads.test_failures import OF_TORCHRUN, OUT_OF_GPU_MEMORY, end_with
from workloads import tasks
from workloads.failures.causes import Code
from workloads.models import Run
from workloads.reasons.limits import AT_LIMIT
from workloads.runs import ending, telling
from workloads.runs.logs import keeping
from workloads.runs.states import State

HOUR = timedelta(hours=1)
MOMENT = timedelta(seconds=1)
pytestmark = pytest.mark.django_db


def ran_for_an_hour(now: datetime) -> Run:
    scene = make()
    return factories.run(
        scene.tenancy,
        scene.ada,
        created_at=now - HOUR,
        sent_at=now - HOUR,
        started_at=now - HOUR,
        running_since=now - HOUR,
        state=State.RUNNING,
    )


def mails() -> list[Notice]:
    """What the person was told, the last one last."""
    return list(Notice.objects.filter(kind=NoticeKind.RUN_ENDED).order_by("pk"))


@pytest.mark.slow
def test_a_failure_is_told_once_its_log_says_why(
    watched: Watched, settings: Any
) -> None:
    subscribe(settings)
    run = end_with(watched, OUT_OF_GPU_MEMORY, *OF_TORCHRUN)
    assert run.cause == Code.PROGRAM
    assert told() == [], "its log is read in a moment"
    # Of so short a run only webhooks are told.
    Run.objects.filter(pk=run.pk).update(created_at=run.created_at - HOUR)
    for _ in range(2):
        keeping.keep_of_ended(now=lambda: timezone.now() + timedelta(seconds=5))
    assert told() == ["run.ended"]
    assert last(WebhookEvent.RUN_ENDED)[0]["cause"] == "gpu_memory"
    [mail] = mails()
    assert ["What to do", Code.GPU_MEMORY.advice] in mail.message["facts"]


def test_a_log_that_does_not_come_delays_what_is_told_for_five_minutes_at_most(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribe(settings)
    now = timezone.now()
    run = ran_for_an_hour(now)
    ending.end(run.pk, State.FAILED, now=now, cause=Code.WORKERS)
    telling.tell_overdue(now=now + telling.LONGEST_WAIT - MOMENT)
    assert told() == []
    assert mails() == []
    # Nothing answers for its cluster, so its log is not kept.
    monkeypatch.setattr(clock, "now", lambda: now + telling.LONGEST_WAIT)
    tasks.keep_logs()
    tasks.keep_logs()
    assert told() == ["run.ended"]
    [mail] = mails()
    assert ["What to do", Code.WORKERS.advice] in mail.message["facts"]


@pytest.mark.parametrize(
    ("state", "changed", "said"),
    [
        (State.FINISHED, {}, {}),
        (State.FAILED, {}, {"cause": Code.DISK}),
        (State.FAILED, {}, {"message": f"{AT_LIMIT} of 1 h."}),
        (State.FAILED, {"logs_kept_at": timezone.now()}, {}),
        (State.GONE, {}, {"message": "Somebody deleted it."}),
    ],
)
def test_an_end_of_which_a_log_tells_no_more_is_told_at_once(
    state: State, changed: dict[str, Any], said: dict[str, Any]
) -> None:
    now = timezone.now()
    run = ran_for_an_hour(now)
    Run.objects.filter(pk=run.pk).update(**changed)
    ending.end(run.pk, state, now=now, **said)
    assert len(mails()) == 1
    telling.tell_overdue(now=now + HOUR)
    assert len(mails()) == 1


def test_who_submitted_a_run_is_told_who_else_stopped_it() -> None:
    now = timezone.now()
    run = ran_for_an_hour(now)
    ben = factories.person("Ben Okafor", teams=[run.team])
    # A short one, too: nobody of whom it is knows.
    moments = ("created_at", "sent_at", "started_at", "running_since")
    Run.objects.filter(pk=run.pk).update(
        **dict.fromkeys(moments, now), stop_asked_at=now, stop_asked_by=ben
    )
    ending.end(run.pk, State.STOPPED, now=now)
    [mail] = mails()
    assert mail.person == run.requester
    assert mail.message["sentence"] == "Ben Okafor stopped it."


def test_who_stopped_their_own_run_is_told_nothing() -> None:
    now = timezone.now()
    run = ran_for_an_hour(now)
    Run.objects.filter(pk=run.pk).update(stop_asked_at=now, stop_asked_by=run.requester)
    ending.end(run.pk, State.STOPPED, now=now)
    assert mails() == []


def test_where_no_logs_are_kept_nobody_waits_for_one(settings: Any) -> None:
    settings.ENV = settings.ENV.model_copy(update={"logs_kept_days": 0})
    now = timezone.now()
    run = ran_for_an_hour(now)
    ending.end(run.pk, State.FAILED, now=now)
    assert len(mails()) == 1


def test_logs_that_cannot_be_kept_keep_no_end_from_being_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = timezone.now()
    run = ran_for_an_hour(now)
    ending.end(run.pk, State.FAILED, now=now, cause=Code.WORKERS)

    def fail(**_: Any) -> None:
        raise ExceptionGroup("a sweep failed at some of its rows", [ValueError()])

    monkeypatch.setattr(keeping, "keep_of_ended", fail)
    monkeypatch.setattr(clock, "now", lambda: now + telling.LONGEST_WAIT)
    with pytest.raises(ExceptionGroup):
        tasks.keep_logs()
    assert len(mails()) == 1
