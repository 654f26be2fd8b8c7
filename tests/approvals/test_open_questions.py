"""A question of those who decide: while it is open the clock stands still, and it has an end of its own."""

from datetime import datetime, timedelta

import pytest

from accounts.models import User
from approvals.decisions.actions import ask_back
from approvals.models import Request
from approvals.requests.actions import answer, lapse
from notices.kinds import NoticeKind
from notices.models import Notice
from tests.scene import DAY, HOUR, NOW, Scene


def said(kind: NoticeKind, person: User) -> str:
    """The last that somebody was told of a kind."""
    return Notice.objects.filter(kind=kind, person=person).latest("id").said.sentence


@pytest.mark.parametrize(
    ("days", "lapses"), [(40, NOW + 17 * DAY), (15, NOW + 15 * DAY)]
)
def test_a_question_moves_the_lapse_but_never_past_the_end(
    scene: Scene, days: int, lapses: datetime
) -> None:
    request = scene.ask(3, days=days)
    ask_back(
        request.pk,
        by=scene.priya,
        expected_version=1,
        question="Why three?",
        now=NOW + DAY,
    )
    assert not lapse(request.pk, now=NOW + 14 * DAY)
    answer(request.pk, by=scene.ada, text="Three folds.", now=NOW + 4 * DAY)
    request.refresh_from_db()
    assert (request.lapses, request.answer_by) == (lapses, None)
    assert not lapse(request.pk, now=lapses - timedelta(seconds=1))
    assert lapse(request.pk, now=lapses)
    assert said(NoticeKind.REQUEST_LAPSED, scene.ada).startswith(
        "Nobody decided in time."
    )


def test_a_question_that_nobody_answers_lapses_on_the_date_that_it_was_asked_with(
    scene: Scene,
) -> None:
    request = scene.ask(3, days=40)
    ask_back(
        request.pk,
        by=scene.priya,
        expected_version=1,
        question="Why three?",
        now=NOW + 13 * DAY,
    )
    assert "Unanswered, it lapses on Thu 17 Dec, 12:00 UTC." in said(
        NoticeKind.REQUEST_ASKED_BACK, scene.ada
    )
    assert list(Request.objects.overdue(NOW + 27 * DAY - HOUR)) == []
    assert list(Request.objects.overdue(NOW + 27 * DAY)) == [request]
    assert not lapse(request.pk, now=NOW + 27 * DAY - HOUR)
    assert lapse(request.pk, now=NOW + 27 * DAY)
    assert said(NoticeKind.REQUEST_LAPSED, scene.ada) == (
        "The question about it was not answered in time. Ask again, with the answer in it."
    )


def test_a_question_is_open_until_the_end_that_was_asked_for_at_most(
    scene: Scene,
) -> None:
    request = scene.ask(3, days=3)
    ask_back(
        request.pk,
        by=scene.priya,
        expected_version=1,
        question="Why three?",
        now=NOW + HOUR,
    )
    assert Request.objects.get().lapses == request.until
    Request.objects.update(answer_by=None)  # asked before questions had a date
    assert list(Request.objects.overdue(request.until)) == [request]
    assert lapse(request.pk, now=request.until)
