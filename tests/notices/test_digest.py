"""The daily mail: at the person's hour, once a day, with everything that could wait, and holding nothing else up."""

from datetime import datetime, timedelta

import pytest

from accounts.models import User
from notices import digest
from notices.actions import tell
from notices.delivery import deliver_due
from notices.digest import collect, last_hour
from notices.kinds import NoticeKind, Pace
from notices.message import Message
from notices.models import Delivery, Digest, DigestHour, Notice, Preference
from tests import factories
from tests.posting import Running
from tests.scene import NOW  # 12:00

pytestmark = pytest.mark.django_db
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def ada() -> User:
    """Ada wants her mail at three in the afternoon."""
    ada = factories.person("Ada", email="ada@example.com")
    DigestHour.objects.create(person=ada, hour=15)
    Preference.objects.create(
        person=ada, kind=NoticeKind.REQUEST_WAITING, pace=Pace.DIGEST
    )
    return ada


def told(
    to: User, title: str, now: datetime, kind: NoticeKind = NoticeKind.REQUEST_WAITING
) -> None:
    tell(
        kind,
        to=[to],
        subject=("request", 1),
        link=f"/requests/{title}/",
        message=Message(title, "x"),
        now=now,
    )


def run(post: Running, at: datetime) -> list[str]:
    """A worker's pass; returns the subjects of what arrived."""
    before = len(post.got)
    collect(now=at)
    deliver_due(now=lambda: at, outside=post.outside())
    return [got["title"] for got in post.got[before:]]


def test_one_mail_a_day_holds_everything_until_its_hour(
    ada: User, post: Running
) -> None:
    told(ada, "first", NOW)
    told(ada, "second", NOW + HOUR)
    assert run(post, NOW + 2 * HOUR) == []
    assert run(post, NOW + 3 * HOUR) == ["2 notices, Fri 20 Nov"]
    text, html = post.got[0]["text"], post.got[0]["html"]
    for words in ("first", "second", "https://gpus.example.com/requests/first/"):
        assert words in text
        assert words in html
    assert text.index("first") < text.index("second")
    assert run(post, NOW + 4 * HOUR) == []


def test_what_comes_after_the_hour_waits_for_the_next_day(
    ada: User, post: Running
) -> None:
    told(ada, "first", NOW)
    run(post, NOW + 3 * HOUR)
    told(ada, "late", NOW + 4 * HOUR)
    assert run(post, NOW + 5 * HOUR) == []
    assert run(post, NOW + DAY + 3 * HOUR) == ["1 notice, Sat 21 Nov"]


def test_a_second_hour_on_the_same_day_gives_no_second_mail(
    ada: User, post: Running
) -> None:
    told(ada, "first", NOW)
    run(post, NOW + 3 * HOUR)
    told(ada, "late", NOW + 4 * HOUR)
    DigestHour.objects.update(hour=18)
    assert run(post, NOW + 7 * HOUR) == []
    assert run(post, NOW + DAY + 6 * HOUR) == ["1 notice, Sat 21 Nov"]


def test_two_workers_write_one_mail(ada: User) -> None:
    told(ada, "first", NOW)
    assert (collect(now=NOW + 3 * HOUR), collect(now=NOW + 3 * HOUR)) == (1, 0)
    assert Delivery.objects.count() == 1
    assert Digest.objects.get().notices.count() == 1


def test_after_days_without_a_worker_there_is_one_mail(
    ada: User, post: Running
) -> None:
    told(ada, "first", NOW)
    told(ada, "second", NOW + DAY)
    assert run(post, NOW + 3 * DAY) == ["2 notices, Sun 22 Nov"]


def test_what_is_wanted_at_once_does_not_wait_for_the_mail(
    ada: User, post: Running
) -> None:
    told(ada, "may wait", NOW)
    told(ada, "at once", NOW, NoticeKind.REQUEST_DECIDED)
    assert run(post, NOW) == ["at once"]
    post.fail("smtp", 451, times=1)
    told(ada, "again at once", NOW + 3 * HOUR, NoticeKind.REQUEST_DECIDED)
    # The first to be tried is refused for now; it holds the other up no longer than its own attempt.
    assert len(run(post, NOW + 3 * HOUR)) == 1


def test_a_mail_that_cannot_be_sent_now_keeps_its_content(
    ada: User, post: Running
) -> None:
    told(ada, "first", NOW)
    post.fail("smtp", 451, times=1)
    assert run(post, NOW + 3 * HOUR) == []
    told(ada, "late", NOW + 3 * HOUR + timedelta(seconds=1))
    assert run(post, NOW + 4 * HOUR) == ["1 notice, Fri 20 Nov"]
    assert Notice.objects.filter(digest=None).count() == 1


def test_who_chose_no_hour_gets_it_at_eight(post: Running) -> None:
    ben = factories.person("Ben", email="ben@example.com")
    told(ben, "budget", NOW, NoticeKind.BUDGET_SOFT)
    assert run(post, NOW + 19 * HOUR) == []
    assert run(post, NOW + 20 * HOUR) == ["1 notice, Sat 21 Nov"]


@pytest.mark.parametrize(("hour", "back"), [(12, 0), (11, 1), (13, 23), (0, 12)])
def test_the_last_hour_is_never_in_the_future(hour: int, back: int) -> None:
    assert last_hour(NOW, hour) == NOW - back * HOUR


def test_a_mail_that_cannot_be_written_keeps_no_other_from_being_written(
    ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    eve = factories.person("Eve", email="eve@example.com")
    DigestHour.objects.create(person=eve, hour=15)
    for person in (ada, eve):
        Preference.objects.update_or_create(
            person=person,
            kind=NoticeKind.REQUEST_WAITING,
            defaults={"pace": Pace.DIGEST},
        )
        told(person, "first", NOW)
    write = digest._write

    def broken(person_id: int, moment: datetime, *, now: datetime) -> bool:
        if person_id == ada.pk:
            raise RuntimeError("broken")
        return write(person_id, moment, now=now)

    monkeypatch.setattr(digest, "_write", broken)
    with pytest.raises(ExceptionGroup):
        collect(now=NOW + 3 * HOUR)
    assert [row.person for row in Digest.objects.all()] == [eve]


def test_no_mail_is_written_of_nothing_where_what_waited_was_just_taken_back(
    ada: User,
) -> None:
    assert digest._write(ada.pk, NOW, now=NOW) is False
    assert not Delivery.objects.exists()
