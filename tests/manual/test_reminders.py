"""What people carry out is told when it is to be done, and asked after on dates that its page says."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from accounts.roles import Role
from allocations.ends import sweep as ends
from approvals.fulfilment import actions as fulfilment
from approvals.requests.timeline import coming
from approvals.shares import actions as apart
from approvals.states import State
from manual import actions as task_actions
from manual import reminders
from manual.models import Task
from manual.tasks import remind
from notices.kinds import NoticeKind, Way
from notices.models import Channel, Notice
from notices.sealing import seal
from policy.document import Override, Policy, Thresholds, Where
from tests import factories
from tests.approvals.shop import granted, later, task_of
from tests.calling import Caller
from tests.scene import DAY, HOUR, NOW, Scene


def told(kind: NoticeKind) -> list[str]:
    """Who was told of this kind, in the order of the alphabet."""
    rows = Notice.objects.filter(kind=kind).select_related("person")
    return sorted(row.person.name for row in rows if row.person)


def sweep(hours: float) -> int:
    """One round so many hours after the scene's moment; how many tasks were late anew."""
    now = later(hours=hours)
    return sum(reminders.remind(pk, now=now) for pk in reminders.due(now))


def test_leads_and_channels_are_told_what_is_to_be_carried_out(scene: Scene) -> None:
    place = Channel.objects.create(
        name="Platform",
        way=Way.TEAMS,
        sealed=seal("https://hooks.example.com/x"),
        kinds=["task_open"],
    )
    task = task_of(granted(scene, "openai"))
    assert told(NoticeKind.TASK_OPEN) == ["Marcus Weber", "Priya Raman"]
    notice = Notice.objects.get(kind=NoticeKind.TASK_OPEN, channel=place)
    assert notice.link == f"/tasks/{task.pk}/"
    assert (
        notice.said.title
        == "To be carried out: set up gpt-4o-mini with 2k tokens a minute for Vision"
    )
    assert ("To be carried out by", "Sat 21 Nov, 12:00 UTC") in notice.said.facts


def test_what_is_taken_down_and_set_apart_is_told_as_well(scene: Scene) -> None:
    asked = granted(scene, "openai")
    fulfilment.finish(task_of(asked).pk, by=scene.priya, note="There.", now=NOW)
    ends.sweep(NOW + 3 * DAY)
    apart.set_shares(
        scene.tenancy.pk, by=scene.priya, isolation="subscription", now=NOW
    )
    titles = set(
        Notice.objects.filter(kind=NoticeKind.TASK_OPEN)
        .order_by("pk")
        .values_list("message__title")
    )
    assert len(titles) == 3
    assert all(task.due_at == task.created_at + DAY for task in Task.objects.all())


def test_only_leads_at_work_are_told_while_there_are_some(scene: Scene) -> None:
    User.objects.filter(pk=scene.marcus.pk).update(is_away=True, away_known_at=NOW)
    granted(scene, "openai")
    assert told(NoticeKind.TASK_OPEN) == ["Priya Raman"]


def test_a_reminder_and_an_escalation_each_come_once_on_their_dates(
    scene: Scene,
) -> None:
    task = task_of(granted(scene, "openai"))
    assert [sweep(23.9), sweep(24), sweep(24), sweep(47.9)] == [0, 1, 0, 0]
    assert told(NoticeKind.TASK_LATE) == ["Marcus Weber", "Priya Raman"]
    task_actions.take(task.pk, to=scene.priya, by=scene.priya, now=later(hours=40))
    assert [sweep(48), sweep(60)] == [1, 0]
    assert told(NoticeKind.TASK_LATE) == [
        "Elena Petrova",
        "Marcus Weber",
        "Priya Raman",
        "Priya Raman",
    ]
    sentence = (
        Notice.objects.filter(person=scene.elena, kind=NoticeKind.TASK_LATE)
        .get()
        .said.sentence
    )
    assert (
        sentence
        == "Priya Raman has taken it, and it is not done yet. Ada Okafor waits for it."
    )


def test_a_sweep_that_comes_late_tells_each_once(scene: Scene) -> None:
    granted(scene, "openai")
    assert [sweep(100), sweep(101)] == [1, 0]
    assert told(NoticeKind.TASK_LATE) == [
        "Elena Petrova",
        "Marcus Weber",
        "Priya Raman",
    ]


def test_what_is_over_is_not_asked_after(scene: Scene) -> None:
    task = task_of(granted(scene, "openai"))
    due = reminders.due(later(hours=25))
    fulfilment.finish(task.pk, by=scene.priya, note="There.", now=later(hours=20))
    assert due == [task.pk]
    assert not reminders.remind(task.pk, now=later(hours=25))
    assert reminders.due(later(hours=25)) == []


def test_a_policy_gives_an_offering_a_time_of_its_own(scene: Scene) -> None:
    slow = Override(where=Where(offerings=("cluster",)), set={"carried_out_hours": 120})
    factories.policy(
        Policy(thresholds=Thresholds(carried_out_hours=8), overrides=(slow,)), now=NOW
    )
    assert task_of(granted(scene, "openai")).due_at == NOW + 8 * HOUR
    assert task_of(granted(scene, "cluster")).due_at == NOW + 120 * HOUR


def test_the_dates_stand_on_the_request_the_task_and_in_the_api(
    scene: Scene, client: Client
) -> None:
    asked = granted(scene, "openai")
    task = task_of(asked)
    ahead = {
        part["title"]: part["at"]
        for part in coming(asked, State.SETTING_UP, [], None, [task])
    }
    assert (
        ahead["Should be carried out, else platform leads are reminded"] == task.due_at
    )
    assert (
        ahead["Engineering leadership is told, if it is not carried out"]
        == task.escalate_at
    )
    client.force_login(scene.priya)
    assert "To be carried out by" in client.get(f"/tasks/{task.pk}/").content.decode()
    body = Caller(scene.priya).get(f"tasks/{task.pk}/").json()
    assert (body["due_at"], body["reminded_at"]) == ("2026-11-21T12:00:00Z", None)
    sweep(50)
    said = client.get(f"/requests/{asked.pk}/").content.decode()
    assert "Engineering leadership was told" in said


@pytest.mark.parametrize("many", [1, 6])
def test_asking_after_takes_as_many_queries_however_many_leads(
    scene: Scene, many: int
) -> None:
    task = task_of(granted(scene, "openai"))
    for _ in range(many):
        factories.person("", Role.PLATFORM_LEAD)
    with CaptureQueriesContext(connection) as seen:
        assert reminders.remind(task.pk, now=NOW + 2 * DAY)
    assert len(seen) <= 12, [query["sql"][:90] for query in seen]


def test_the_beat_asks_after_what_is_late(scene: Scene) -> None:
    task = task_of(granted(scene, "openai"))
    Task.objects.filter(pk=task.pk).update(due_at=task.created_at - timedelta(days=999))
    remind()
    task.refresh_from_db()
    assert task.reminded_at is not None
