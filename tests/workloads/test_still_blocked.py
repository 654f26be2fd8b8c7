"""Who submitted a run hears once that it still waits for another one after a day."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from notices.models import Notice
from tests import factories
from tests.scene import NOW
from ui.amounts import moment
from workloads.models import Run
from workloads.runs.still_blocked import tell_of_blocked

pytestmark = pytest.mark.django_db
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


def blocked(*, behind: Run | None = None, **fields: Any) -> Run:
    """A run that waits for another one, since a day ago unless told otherwise."""
    if behind is None:
        tenancy = factories.tenancy()
        ada = factories.person("Ada", teams=[tenancy.team])
        behind = factories.run(
            tenancy, ada, title="Train", state="waiting", created_at=NOW - 2 * DAY
        )
    usual = {"title": "Evaluate", "state": "blocked", "created_at": NOW - DAY}
    asked = {**usual, "after": behind, **fields}
    return factories.run(
        behind.tenancy, asked.pop("requester", behind.requester), **asked
    )


def told(now: datetime = NOW) -> list[Notice]:
    """What people have been told of, once the sweep has looked."""
    tell_of_blocked(now=now)
    return [*Notice.objects.filter(kind="run_blocked").order_by("pk")]


def test_it_is_told_after_a_day_once() -> None:
    run = blocked()
    assert told(NOW - MINUTE) == []
    [notice] = told()
    assert told(NOW + 9 * DAY) == [notice]
    assert (notice.person, notice.link) == (run.requester, f"/runs/{run.pk}")


def test_it_says_since_when_for_what_and_until_when() -> None:
    run = blocked()

    [notice] = told()

    before = run.after_id
    assert notice.message["title"] == "Evaluate still waits for another run"
    assert notice.message["sentence"] == (
        f"It begins when run {before}, Train, has finished. "
        f"Run {before} does not run now, so nobody can say when."
    )
    facts = dict(notice.message["facts"])
    assert (facts["Team"], facts["Waits since"]) == (
        run.team.name,
        moment(NOW - DAY, NOW),
    )


def test_all_runs_of_a_person_are_told_of_at_once() -> None:
    first = blocked()
    second = blocked(behind=first, title="Report")
    colleague = factories.person("Mei", teams=[first.team])
    theirs = blocked(behind=first, title="Plot", requester=colleague)

    notices = {one.person: one for one in told()}

    assert set(notices) == {first.requester, colleague}
    assert notices[colleague].message["title"] == "Plot still waits for another run"
    assert notices[colleague].link == f"/runs/{theirs.pk}"
    mine = notices[first.requester].message
    assert mine["title"] == "2 runs still wait for others"
    assert [tuple(one) for one in mine["facts"]] == [
        ("Evaluate", f"It begins when run {first.after_id}, Train, has finished."),
        ("Report", f"It begins when run {second.after_id}, Evaluate, has finished."),
    ]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"state": "submitted"}, id="it was sent"),
        pytest.param({"state": "skipped", "ended_at": NOW}, id="it was skipped"),
        pytest.param({"created_at": NOW - DAY + MINUTE}, id="it waits for less"),
    ],
)
def test_nobody_is_told_of_what_does_not_wait_for_so_long(
    fields: dict[str, Any],
) -> None:
    blocked(**fields)
    assert told() == []
