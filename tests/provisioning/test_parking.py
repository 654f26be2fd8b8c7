"""A tenancy that ends every worker that tries it is tried no more, until somebody has it tried again."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.test import Client

from accounts.roles import Role
from allocations.changes import refresh
from audit.models import Event
from notices.models import Notice
from provisioning import parking
from provisioning.actions import look_again
from provisioning.controller import acquire
from provisioning.models import Tenancy
from provisioning.reconcile import reconcile
from provisioning.status import write_status
from reconciling import failpoints, lease
from reconciling.controller import MAX_UNFINISHED
from tests import factories
from tests.provisioning.conftest import Place


class Dead(BaseException):
    """The worker is gone."""


def die() -> None:
    raise Dead


def exhausted() -> None:
    """What a process sees that may have no more memory."""
    raise MemoryError


@pytest.fixture
def poison(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A place that ends every worker that tries it."""
    monkeypatch.setenv("FAILPOINT", f"provision.write/{place.tenancy.pk}:always")
    monkeypatch.setattr(failpoints, "strike", die)
    return place


def try_until_due(place: Place) -> float:
    """One worker's try; the seconds until it is tried again. The clock goes on to then."""
    with suppress(Dead, MemoryError):
        place.reconcile()
    wait = (place.row.requeue_at - place.time).total_seconds()
    place.time = max(
        place.row.requeue_at, place.time + timedelta(seconds=lease.SECONDS)
    )
    return wait


def parked(place: Place) -> Place:
    """The place after all its tries."""
    for _ in range(MAX_UNFINISHED + 1):
        try_until_due(place)
    assert place.row.parked_at is not None
    return place


@pytest.mark.slow
@pytest.mark.parametrize("what", [die, exhausted], ids=["crash", "memory"])
def test_it_is_parked_after_five_tries_that_nobody_came_back_from_and_the_others_go_on(
    poison: Place, monkeypatch: pytest.MonkeyPatch, what: Callable[[], None]
) -> None:
    monkeypatch.setattr(failpoints, "strike", what)
    lead, other = (
        factories.person("", Role.PLATFORM_LEAD),
        factories.tenancy(on=poison.cluster),
    )
    began = poison.time
    assert [try_until_due(poison) for _ in range(MAX_UNFINISHED)] == [5, 5, 10, 20, 40]
    assert not Tenancy.objects.exclude(parked_at=None).exists()
    assert poison.reconcile() is None
    assert (poison.row.parked_at, poison.time) == (
        poison.time,
        began + timedelta(seconds=80),
    )
    assert poison.row.ready["message"] == parking.PARKED
    assert "workers' logs" in poison.row.explanation
    event = Event.objects.get(kind="tenancy.parked")
    assert (event.subject_id, event.team_id) == (
        str(poison.tenancy.pk),
        poison.tenancy.team_id,
    )
    assert list(Notice.objects.values_list("kind", "person")) == [
        ("tenancy_parked", lead.pk)
    ]
    poison.later(hours=1)
    assert not Tenancy.objects.due(poison.time).filter(pk=poison.tenancy.pk).exists()
    assert poison.reconcile() is None
    assert Event.objects.filter(kind="tenancy.parked").count() == 1
    reconcile(other.pk, now=poison.now)
    assert Tenancy.objects.get(pk=other.pk).is_settled


def test_a_pass_that_says_how_it_ended_counts_for_nothing(
    poison: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        for _ in range(MAX_UNFINISHED - 1):
            try_until_due(poison)
        monkeypatch.delenv("FAILPOINT")
        poison.kubernetes.fail("clusterqueues", "PATCH", status=403)
        poison.reconcile()
        assert (poison.row.ready["reason"], poison.row.unfinished) == ("Refused", 0)
        poison.later(minutes=10)
        monkeypatch.setenv("FAILPOINT", "provision.write:always")
    assert poison.row.parked_at is None


def test_a_worker_that_was_slow_and_comes_back_is_no_worker_that_died(
    place: Place,
) -> None:
    slow = acquire(place.tenancy.pk, now=place.time)
    assert slow is not None
    for _ in range(MAX_UNFINISHED - 1):
        place.later(minutes=1)
        assert acquire(place.tenancy.pk, now=place.time) is not None
    assert place.row.unfinished == MAX_UNFINISHED
    slow.acknowledge()
    place.later(minutes=1)
    assert acquire(place.tenancy.pk, now=place.time) is not None
    assert (place.row.parked_at, place.row.unfinished) == (None, 1)


def test_a_status_that_comes_too_late_is_not_written_and_says_that_its_worker_lives(
    place: Place,
) -> None:
    slow = acquire(place.tenancy.pk, now=place.time)
    assert slow is not None
    before = place.row
    place.later(minutes=1)
    assert acquire(place.tenancy.pk, now=place.time) is not None
    later = {"writes": 0, "now": place.time, "requeue_at": place.time}
    assert not write_status(before, slow, seen=[], error=None, **later)  # type: ignore[arg-type]
    assert (place.row.unfinished, place.row.lease_no, place.row.is_true) == (
        0,
        2,
        False,
    )


def test_a_worker_that_only_slept_changes_nothing_of_what_is_parked(
    place: Place,
) -> None:
    held = None
    for _ in range(MAX_UNFINISHED):
        held = acquire(place.tenancy.pk, now=place.time)
        place.later(minutes=10)
    assert held is not None
    assert acquire(place.tenancy.pk, now=place.time) is None
    assert not held.renew(now=place.time)
    assert not held.release()
    assert place.row.parked_at is not None


def test_whoever_may_has_it_tried_again_and_it_comes_true(
    poison: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    parked(poison)
    monkeypatch.delenv("FAILPOINT")
    look_again(poison.row, by=poison.ada, now=poison.time)
    assert (poison.row.parked_at, poison.row.ready["message"]) == (
        None,
        parking.TRIED_AGAIN,
    )
    event = Event.objects.get(kind="tenancy.tried_again")
    assert (event.actor_name, event.subject_id) == (
        "Ada Okafor",
        str(poison.tenancy.pk),
    )
    poison.reconcile()
    assert poison.row.is_settled
    look_again(poison.row, by=poison.ada, now=poison.time)
    assert Event.objects.filter(kind="tenancy.tried_again").count() == 1


def test_what_is_wanted_anew_is_tried_anew(
    poison: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    parked(poison)
    monkeypatch.delenv("FAILPOINT")
    factories.request(poison.ada, poison.row, poison.a100, now=poison.time)
    assert (poison.row.parked_at, poison.row.unfinished) == (None, 0)
    refresh(poison.row, actor=poison.ada.as_actor(), now=poison.time)
    poison.reconcile()
    assert poison.row.is_settled


def test_the_database_refuses_that_anybody_works_on_what_is_parked(
    place: Place,
) -> None:
    rows, now = Tenancy.objects.filter(pk=place.tenancy.pk), place.time
    rows.update(parked_at=now)
    wrong: dict[str, dict[str, object]] = {
        "a_parked_tenancy_is_not_true": {"is_true": True},
        "a_parked_tenancy_is_worked_on_by_nobody": {"lease_until": now},
    }
    for name, fields in wrong.items():
        with pytest.raises(IntegrityError, match=name), transaction.atomic():
            rows.update(**fields)


def test_pages_say_that_it_is_parked_and_have_it_tried_again(
    poison: Place, client: Client
) -> None:
    lead = factories.person("", Role.PLATFORM_LEAD)
    parked(poison)
    client.force_login(lead)
    page = client.get(f"/teams/{poison.tenancy.team.slug}/").content.decode()
    assert "Parked: 5 tries in a row" in page
    assert "finds the reason in the workers" in page
    assert "Parked: 5 tries in a row" in client.get("/").content.decode()
    assert (
        "Parked</span>"
        in client.get(f"/clusters/{poison.cluster.name}/").content.decode()
    )
    again = f"/tenancies/{poison.tenancy.pk}/look-again"
    assert f'action="{again}"' in page
    client.post(again)
    assert poison.row.parked_at is None
