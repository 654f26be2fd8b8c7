"""Who submitted a run hears once, in time, that its time limit ends it."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from notices.models import Notice
from tests import factories
from tests.scene import NOW
from workloads.models import Run
from workloads.runs import actions
from workloads.runs.ending_soon import tell_of_ends

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def running(limit: timedelta, *, left: timedelta, **fields: Any) -> Run:
    """A run with this time limit that has run for all of it but what is left."""
    tenancy = factories.tenancy()
    ada = factories.person("Ada", teams=[tenancy.team])
    began = NOW + left - limit
    return factories.run(
        tenancy,
        ada,
        **{
            "state": "running",
            "created_at": began,
            "sent_at": began,
            "started_at": began,
            "running_since": began,
            "limit_seconds": int(limit.total_seconds()),
            **fields,
        },
    )


def told(now: datetime = NOW) -> list[Notice]:
    """What people have been told of, once the sweep has looked."""
    tell_of_ends(now=now)
    return [*Notice.objects.filter(kind="run_ending").order_by("pk")]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("limit", "left", "is_told"),
    [
        (2 * HOUR, 20 * MINUTE, True),
        (2 * HOUR, 21 * MINUTE, False),
        (119 * MINUTE, 20 * MINUTE, False),
        (10 * HOUR, HOUR, True),
        (10 * HOUR, 61 * MINUTE, False),
        (100 * HOUR, 6 * HOUR, True),
        (100 * HOUR, 7 * HOUR, False),
        (10 * HOUR, timedelta(0), False),
    ],
)
def test_it_is_told_a_tenth_of_the_limit_before(
    limit: timedelta, left: timedelta, is_told: bool
) -> None:
    running(limit, left=left)
    assert (len(told()) == 1) is is_told


@pytest.mark.django_db
def test_it_says_when_and_leads_to_more_time() -> None:
    run = running(10 * HOUR, left=30 * MINUTE)
    [notice] = told()
    assert notice.person == run.requester
    assert notice.link == f"/runs/{run.pk}/limit"
    assert notice.message["title"] == "Fine-tune BERT reaches its time limit in 30 min"
    assert "Give it more time if it needs more" in notice.message["sentence"]
    facts = dict(notice.message["facts"])
    assert (facts["Ran for"], facts["Cost"]) == ("9 h", "$70")


@pytest.mark.django_db
def test_one_that_keeps_its_limit_is_told_to_save_a_checkpoint() -> None:
    run = running(10 * HOUR, left=30 * MINUTE)
    run.manifests[0]["kind"] = "MPIJob"
    run.save(update_fields=["manifests"])
    [notice] = told()
    assert notice.link == f"/runs/{run.pk}"
    assert "writes a checkpoint before" in notice.message["sentence"]


@pytest.mark.django_db
def test_it_is_told_once_and_again_only_of_another_end() -> None:
    run = running(10 * HOUR, left=30 * MINUTE)
    assert len(told()) == 1
    assert len(told(NOW + MINUTE)) == 1
    actions.change_limit(run.pk, minutes=20 * 60, by=run.requester, now=NOW)
    assert len(told(NOW + MINUTE)) == 1
    assert len(told(NOW + 9 * HOUR)) == 2


@pytest.mark.django_db
@pytest.mark.parametrize(
    "fields",
    [
        {"stop_asked_at": NOW},
        {"state": "failed", "ended_at": NOW, "running_since": None},
        {"state": "waiting", "running_since": None},
    ],
)
def test_nobody_is_told_of_what_ends_otherwise(fields: dict[str, Any]) -> None:
    given = dict(fields)
    if "stop_asked_at" in given:
        given["stop_asked_by"] = factories.person("Mei")
    running(10 * HOUR, left=30 * MINUTE, **given)
    assert told() == []
