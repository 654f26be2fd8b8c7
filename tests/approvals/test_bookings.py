"""What begins later: judged by its own days, promised, begun by itself, cancelled; what stands in its way is told."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from allocations import actions as allocations
from allocations import provisioners
from allocations.bookings import actions as bookings
from allocations.ends import actions as ends
from allocations.models import Allocation, Budget
from allocations.schedule import State as Allocated
from allocations.share_actions import set_shares
from approvals.fulfilment import actions as fulfilment
from approvals.judging import reevaluation
from approvals.models import Request
from approvals.requests.actions import judge, submit
from approvals.requests.presenting import state_of
from approvals.requests.wanted import Wanted, resolve
from approvals.states import State
from audit.models import Event
from checks.allocations import desired_is_held, granted_once
from fleet.flavors.actions import change_flavor
from fleet.models import Flavor
from notices.models import Notice
from provisioning.models import Isolation, Tenancy
from tests import factories
from tests.approvals.policies import in_force
from tests.calling import Caller
from tests.scene import DAY, HOUR, NOW, REASON, Scene, scene
from tests.subscribed import subscribe, told
from ui.amounts import moment
from web.fields import INPUT
from web.refusals import BadInput, Conflict

pytestmark = pytest.mark.django_db
NEXT_WEEK = NOW + 7 * DAY


@pytest.fixture
def here() -> Scene:
    """A team, and a kind of GPU of which there are eight."""
    made = scene()
    Flavor.objects.filter(pk=made.flavor.pk).update(gpus_total=8, gpus_ready=8)
    return made


def wanted(
    here: Scene,
    gpus: int,
    *,
    starts: datetime | None = NEXT_WEEK,
    days: float = 2,
    now: datetime = NOW,
) -> Wanted:
    """An ask for so many GPUs from a moment on, for so many days."""
    spec = {"flavor": "training/a100", "gpus": gpus, "purpose": "training"}
    until = (starts or now) + timedelta(days=days)
    return resolve(
        "gpus", spec, team=here.team, until=until, starts=starts, reason=REASON
    )


def booked(
    here: Scene, gpus: int = 2, *, starts: datetime = NEXT_WEEK, days: float = 2
) -> Allocation:
    """GPUs that are booked; the policy approves two of them by itself."""
    asked = submit(wanted(here, gpus, starts=starts, days=days), by=here.ada, now=NOW)
    assert asked.state == State.APPROVED
    return Allocation.objects.get(hold=asked.hold)


def grant(
    here: Scene, gpus: int, *, until: datetime, starts: datetime | None = None
) -> Allocation:
    """GPUs that are granted from a moment on, or at once, as the last step of an approval does it."""
    flavor = Flavor.objects.select_related("cluster").get(pk=here.flavor.pk)
    granted = factories.granted(here.ada, here.tenancy, flavor, gpus=gpus, until=until)
    return allocations.grant(
        replace(granted, starts_at=starts), actor=here.priya.as_actor(), now=NOW
    )


def own_nodes(here: Scene) -> Flavor:
    """A kind of GPU on the same cluster that is the team's alone."""
    return factories.flavor(
        here.flavor.cluster,
        "h100",
        dedicated_to=here.team,
        node_labels={"own": "vision"},
        node_taints=[{"key": "own", "value": "vision", "effect": "NoSchedule"}],
    )


def desired(here: Scene) -> int:
    """GPUs that the tenancy's desired state guarantees."""
    return sum(
        one.gpus for one in Tenancy.objects.get(pk=here.tenancy.pk).desired.flavors
    )


def test_it_is_promised_and_takes_nothing_before_it_begins(here: Scene) -> None:
    row = booked(here)
    assert row.is_booked
    assert (row.starts_at, row.begun_at, row.charged_from) == (NEXT_WEEK, None, None)
    assert here.allocated() == 0
    assert desired(here) == 0
    assert provisioners.state_of(row, now=NOW) is Allocated.BOOKED
    assert state_of(Request.objects.with_allocation().get(), now=NOW) is State.BOOKED
    assert not list(granted_once(NOW))
    assert not list(desired_is_held(NOW))


def test_once_begun_it_is_there_when_the_cluster_has_it(here: Scene) -> None:
    factories.make_true(here.tenancy, at=NOW)
    row = booked(here)
    assert row.generation is None
    assert bookings.begin(row.pk, now=NEXT_WEEK)
    begun = Allocation.objects.described().get(pk=row.pk)
    assert provisioners.state_of(begun, now=NEXT_WEEK) is Allocated.SETTING_UP
    made = factories.make_true(here.tenancy, at=NEXT_WEEK)
    begun = Allocation.objects.described().get(pk=row.pk)
    assert begun.generation == made.generation
    assert provisioners.state_of(begun, now=NEXT_WEEK) is Allocated.HELD


def test_its_money_is_set_aside_in_the_months_of_its_own_days(here: Scene) -> None:
    booked(here, starts=NOW + 14 * DAY)
    found = {
        f"{row.month:%Y-%m}": row.held_usd
        for row in Budget.objects.filter(team=here.team)
    }
    assert found["2026-12"] == 2 * 48 * here.flavor.price_per_gpu_hour.quantize(
        Decimal("0.01")
    )
    assert found.get("2026-11", 0) == 0


def test_webhooks_are_told_of_it_once_it_begins(here: Scene, settings: Any) -> None:
    row = booked(here)
    subscribe(settings)
    assert bookings.begin(row.pk, now=NEXT_WEEK)
    assert told() == ["allocation.ready"]


def test_it_begins_by_itself_and_costs_from_then_on(here: Scene) -> None:
    row = booked(here)
    assert bookings.to_begin(NEXT_WEEK - HOUR) == []
    assert not bookings.begin(row.pk, now=NEXT_WEEK - HOUR)
    assert bookings.to_begin(NEXT_WEEK) == [row.pk]
    assert bookings.begin(row.pk, now=NEXT_WEEK)
    row.refresh_from_db()
    assert (row.begun_at, row.charged_from) == (NEXT_WEEK, NEXT_WEEK)
    assert here.allocated() == 2
    assert desired(here) == 2
    assert not bookings.begin(row.pk, now=NEXT_WEEK)
    assert here.allocated() == 2
    assert not list(granted_once(NEXT_WEEK))
    assert not list(desired_is_held(NEXT_WEEK))
    assert Event.objects.filter(kind="allocation.begun").count() == 1


def test_nobody_takes_what_is_booked_on_its_days(here: Scene) -> None:
    grant(here, 8, starts=NEXT_WEEK, until=NEXT_WEEK + 2 * DAY)
    over = judge(wanted(here, 1, starts=None, days=8), person=here.ada, now=NOW)
    [rule] = [one for one in over.answer.rules if one.code == "free"]
    assert not rule.holds
    assert (
        rule.text
        == "0 free for this time; 8 more are booked from Fri 27 Nov, 12:00 UTC"
    )
    before = judge(wanted(here, 2, starts=None, days=6), person=here.ada, now=NOW)
    assert all(one.holds for one in before.answer.rules if one.code == "free")


def test_a_grant_of_now_that_would_break_a_promise_is_refused_under_the_lock(
    here: Scene,
) -> None:
    grant(here, 8, starts=NEXT_WEEK, until=NEXT_WEEK + 2 * DAY)
    asked = submit(wanted(here, 2, starts=None, days=9), by=here.ada, now=NOW)
    assert asked.state == State.WAITING
    with pytest.raises(Conflict) as refused, transaction.atomic():
        grant(here, 2, until=NOW + 9 * DAY)
    assert refused.value.code == "not_enough_free"
    assert f"A100 are free on {here.flavor.cluster.title} in" in refused.value.message
    assert here.allocated() == 0


def test_a_booking_finds_free_what_ends_before_it(here: Scene) -> None:
    grant(here, 8, until=NOW + 3 * DAY)
    full = judge(wanted(here, 2, starts=NOW + 2 * DAY), person=here.ada, now=NOW)
    [rule] = [one for one in full.answer.rules if one.code == "free"]
    assert (rule.holds, rule.text) == (
        False,
        "0 free from Sun 22 Nov, 12:00 UTC until its end",
    )
    assert full.fits_from is not None
    assert full.fits_from >= NOW + 3 * DAY
    fits = judge(wanted(here, 2, starts=full.fits_from), person=here.ada, now=NOW)
    assert all(one.holds for one in fits.answer.rules if one.code == "free")


def test_one_that_waits_in_a_pool_that_is_full_until_then_is_granted_once_the_policy_allows_it(
    here: Scene,
) -> None:
    grant(here, 8, until=NOW + 3 * DAY)
    asked = submit(wanted(here, 4), by=here.ada, now=NOW)
    assert asked.state == State.WAITING
    in_force(here, automatic_gpus=4)
    assert reevaluation.sweep(NOW + HOUR) == [asked.pk]


def test_days_are_counted_from_when_it_begins(here: Scene) -> None:
    judged = judge(wanted(here, 2, starts=NOW + 30 * DAY), person=here.ada, now=NOW)
    [rule] = [one for one in judged.answer.rules if one.code == "days"]
    assert (rule.holds, rule.text) == (True, "2 days")
    assert (
        judged.answer.sentence
        == "Automatic. It begins by itself on Sun 20 Dec, 12:00 UTC."
    )


@pytest.mark.slow
def test_what_is_booked_for_the_same_time_counts_however_long_ago_it_was_booked(
    here: Scene,
) -> None:
    starts, asked_at = NOW + 60 * DAY, [NOW + week * 8 * DAY for week in range(4)]

    def asks(now: datetime, gpus: int = 2, **when: Any) -> Request:
        ask = wanted(here, gpus, **{"starts": starts, "days": 2, **when})
        return submit(ask, by=here.ada, now=now)

    first = [asks(now) for now in asked_at[:3]]
    assert {one.state for one in first} == {State.APPROVED}
    beyond = asks(asked_at[3])
    assert beyond.state == State.WAITING
    evaluation = beyond.evaluations.get()
    (not_met,) = (rule for rule in evaluation.answer["rules"] if not rule["holds"])
    assert (not_met["code"], not_met["text"]) == (
        "booked",
        "8 GPUs booked for the same time",
    )
    # Neither what ends before counts, nor what was cancelled.
    assert asks(asked_at[3], starts=starts - 2 * DAY).state == State.APPROVED
    fulfilment.release(first[0].pk, by=here.ada, now=asked_at[3])
    assert asks(asked_at[3]).state == State.APPROVED


def test_it_is_cancelled_before_it_begins_and_costs_nothing(here: Scene) -> None:
    row = booked(here)
    assert here.held_usd() > 0
    request = Request.objects.get()
    fulfilment.release(request.pk, by=here.ada, now=NOW + HOUR)
    assert here.held_usd() == 0
    row.refresh_from_db()
    assert (row.end_reason, row.begun_at) == (Allocation.End.RETURNED, None)
    assert not bookings.begin(row.pk, now=NEXT_WEEK)
    assert here.allocated() == 0
    assert (
        state_of(Request.objects.with_allocation().get(), now=NOW + HOUR) is State.ENDED
    )


def test_what_has_not_begun_is_not_given_back_renewed_or_ended_by_the_clock(
    here: Scene,
) -> None:
    row = booked(here)
    with pytest.raises(Conflict) as refused:
        ends.give_back(row.pk, gpus=1, by=here.ada, now=NOW)
    assert refused.value.code == "not_begun"
    assert not ends.expire(row.pk, now=NEXT_WEEK + 30 * DAY)
    assert not Allocation.objects.held(NOW).exists()


def test_it_waits_while_too_few_can_be_had_and_begins_once_they_can(
    here: Scene,
) -> None:
    row = booked(here)
    Flavor.objects.filter(pk=here.flavor.pk).update(gpus_total=1, gpus_ready=1)
    assert not bookings.begin(row.pk, now=NEXT_WEEK)
    row.refresh_from_db()
    assert row.hindrance == "Fewer than 2 × A100 are free."
    Flavor.objects.filter(pk=here.flavor.pk).update(gpus_total=8, gpus_ready=8)
    assert bookings.begin(row.pk, now=NEXT_WEEK + HOUR)
    row.refresh_from_db()
    assert (row.hindrance, row.charged_from) == ("", NEXT_WEEK + HOUR)
    paid = 2 * 47 * here.flavor.price_per_gpu_hour
    assert here.held_usd() == paid.quantize(Decimal("0.01"))


def test_those_that_cannot_begin_keep_none_behind_them_from_its_turn(
    here: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [booked(here, starts=NEXT_WEEK + number * HOUR) for number in range(3)]
    monkeypatch.setattr(bookings, "MAX_AT_ONCE", 2)
    due = NEXT_WEEK + DAY
    for found, seconds in ((bookings.to_begin, 2), (bookings.to_look_at, 300)):
        turns = [found(due + turn * timedelta(seconds=seconds)) for turn in range(3)]
        assert [len(turn) for turn in turns] == [2, 2, 2]
        assert {pk for turn in turns for pk in turn} == {row.pk for row in rows}


def test_a_refusal_while_it_is_made_leaves_nothing_of_it_behind(
    here: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = booked(here)
    money = here.held_usd()

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise Conflict("Its name is taken meanwhile.", code="name_taken")

    with monkeypatch.context() as changed:
        changed.setattr(provisioners, "begin", refuse)
        assert not bookings.begin(row.pk, now=NEXT_WEEK)
    row.refresh_from_db()
    assert (row.hindrance, row.begun_at, row.charged_from) == (
        "Its name is taken meanwhile.",
        None,
        None,
    )
    assert (here.allocated(), here.held_usd()) == (0, money)
    assert bookings.begin(row.pk, now=NEXT_WEEK + HOUR)
    assert here.allocated() == 2


def test_however_long_a_hindrance_is_it_is_kept_and_the_booking_tried_again(
    here: Scene,
) -> None:
    row = booked(here)
    cluster = here.flavor.cluster
    cluster.reachable, cluster.message = False, "It answers 502. " * 30
    cluster.save()
    assert not bookings.begin(row.pk, now=NEXT_WEEK)
    cluster.reachable = True
    cluster.save()
    assert bookings.begin(row.pk, now=NEXT_WEEK + HOUR)


def test_nobody_asks_away_what_a_late_booking_waits_for(here: Scene) -> None:
    row = booked(here)
    Tenancy.objects.filter(pk=here.tenancy.pk).update(stage="here")
    here.flavor.cluster.reachable = False
    here.flavor.cluster.message = "It is switched off."
    here.flavor.cluster.save()
    assert not bookings.begin(row.pk, now=NEXT_WEEK)
    row.refresh_from_db()
    assert "It is switched off." in row.hindrance
    now = NEXT_WEEK + HOUR
    judged = judge(
        wanted(here, 7, starts=None, days=1, now=now), person=here.ada, now=now
    )
    [rule] = [one for one in judged.answer.rules if one.code == "free"]
    assert not rule.holds


def test_a_team_that_has_booked_gpus_of_shared_nodes_cannot_move_to_its_own(
    here: Scene,
) -> None:
    own_nodes(here)
    row = booked(here)
    with pytest.raises(Conflict, match="has booked GPUs of shared nodes") as refused:
        set_shares(
            here.tenancy.pk, by=here.priya, now=NOW, isolation=Isolation.NODE_POOL
        )
    assert refused.value.code == "held"
    bookings.cancel(row.pk, actor=here.ada.as_actor(), now=NOW, why="Not needed.")
    set_shares(here.tenancy.pk, by=here.priya, now=NOW, isolation=Isolation.NODE_POOL)


def test_a_booking_of_gpus_that_are_not_for_the_team_any_more_does_not_begin(
    here: Scene,
) -> None:
    own_nodes(here)
    row = booked(here)
    # As an older version may have left it.
    Tenancy.objects.filter(pk=here.tenancy.pk).update(isolation=Isolation.NODE_POOL)
    sentence = f"These GPUs of {here.flavor.cluster.title} are not for this team."
    assert bookings.look(row.pk, now=NEXT_WEEK - HOUR) == sentence
    assert not bookings.begin(row.pk, now=NEXT_WEEK)
    assert (here.allocated(), desired(here)) == (0, 0)


@pytest.mark.parametrize("field", ["resource", "dedicated_to"])
def test_gpus_that_are_booked_stay_what_they_are(here: Scene, field: str) -> None:
    booked(here)
    values: dict[str, dict[str, Any]] = {
        "resource": {"resource": "nvidia.com/mig-1g.10gb"},
        "dedicated_to": {
            "dedicated_to": factories.team(by=here.priya),
            "node_labels": {"own": "others"},
            "node_taints": [{"key": "own", "value": "others", "effect": "NoSchedule"}],
        },
    }
    with pytest.raises(Conflict, match="booked") as refused:
        change_flavor(here.flavor.pk, values=values[field], by=here.priya)
    assert (refused.value.code, refused.value.field) == ("held", field)


def test_what_could_not_begin_before_its_end_fails_and_its_money_is_free(
    here: Scene,
) -> None:
    row = booked(here)
    Flavor.objects.filter(pk=here.flavor.pk).update(gpus_total=0, gpus_ready=0)
    assert not bookings.begin(row.pk, now=NEXT_WEEK)
    assert not bookings.begin(row.pk, now=NEXT_WEEK + 2 * DAY)
    row.refresh_from_db()
    assert row.end_reason == Allocation.End.FAILED
    assert (
        row.failure
        == "It could not begin before its end. Fewer than 2 × A100 are free."
    )
    assert here.held_usd() == 0
    assert (
        state_of(Request.objects.with_allocation().get(), now=NEXT_WEEK + 3 * DAY)
        is State.FAILED
    )


def test_what_stands_in_its_way_is_told_two_days_before_and_once(here: Scene) -> None:
    row = booked(here)
    Flavor.objects.filter(pk=here.flavor.pk).update(gpus_total=1, gpus_ready=1)
    assert bookings.to_look_at(NEXT_WEEK - 3 * DAY) == []
    soon = NEXT_WEEK - 2 * DAY
    assert bookings.to_look_at(soon) == [row.pk]
    assert (
        bookings.look(row.pk, now=soon)
        == f"1 × A100 too few can be had on {here.flavor.cluster.title} when it begins."
    )
    bookings.look(row.pk, now=soon + HOUR)
    told = Notice.objects.filter(kind="booking_blocked")
    assert told.filter(person=here.ada).count() == 1
    assert told.filter(person=here.priya).count() == 1
    Flavor.objects.filter(pk=here.flavor.pk).update(gpus_total=8, gpus_ready=8)
    assert bookings.look(row.pk, now=soon + 2 * HOUR) == ""


def test_a_hindrance_that_comes_back_is_told_again_and_a_number_that_changes_is_not(
    here: Scene,
) -> None:
    row, soon = booked(here), NEXT_WEEK - 2 * DAY
    told = Notice.objects.filter(person=here.ada, kind="booking_blocked")
    for minute, there in enumerate((1, 0) * 6):
        Flavor.objects.filter(pk=here.flavor.pk).update(gpus_total=there)
        words = f"{2 - there} × A100 too few"
        at = soon + timedelta(minutes=5 * minute)
        assert bookings.look(row.pk, now=at).startswith(words)
        assert told.count() == 1
    for hour, there, notices in ((7, 8, 1), (8, 0, 2), (9, 1, 2)):
        Flavor.objects.filter(pk=here.flavor.pk).update(gpus_total=there)
        bookings.look(row.pk, now=soon + hour * HOUR)
        assert told.count() == notices


@pytest.mark.slow
def test_a_hindrance_that_comes_and_goes_is_told_every_six_hours(here: Scene) -> None:
    row, soon = booked(here), NEXT_WEEK - 2 * DAY
    for minutes in range(0, 12 * 60, 10):
        for there, later in ((0, 0), (8, 5)):
            Flavor.objects.filter(pk=here.flavor.pk).update(gpus_total=there)
            bookings.look(row.pk, now=soon + timedelta(minutes=minutes + later))
    told = Notice.objects.filter(person=here.ada, kind="booking_blocked")
    assert [notice.at for notice in told.order_by("id")] == [
        soon,
        soon + 6 * HOUR + timedelta(minutes=10),
    ]


def test_another_hindrance_is_told_whatever_else_stands_in_the_way_and_once(
    here: Scene,
) -> None:
    row, soon = booked(here), NEXT_WEEK - 2 * DAY
    told = Notice.objects.filter(person=here.ada, kind="booking_blocked")
    Flavor.objects.filter(pk=here.flavor.pk).update(gpus_total=1)
    cluster = here.flavor.cluster
    answers = ("", "It answers 502.", "It answers 503.", "", "It answers 502.")
    for hour, message in enumerate(answers):
        cluster.reachable, cluster.message = not message, message
        cluster.save()
        assert message in bookings.look(row.pk, now=soon + hour * HOUR)
        assert told.count() == (2 if hour else 1)


@pytest.mark.parametrize(
    ("starts", "code"),
    [
        (NOW - HOUR, "in_the_past"),
        (NOW + 91 * DAY, "too_far_ahead"),
        (NOW + 3 * DAY, "begins_after_its_end"),
    ],
)
def test_a_moment_that_makes_no_sense_is_refused(starts: datetime, code: str) -> None:
    with pytest.raises(BadInput) as refused:
        bookings.start_of(starts, until=NOW + 2 * DAY, now=NOW)
    assert (refused.value.code, refused.value.field) == (code, "starts_at")


def test_a_moment_ago_is_at_once() -> None:
    assert (
        bookings.start_of(NOW - timedelta(minutes=1), until=NOW + DAY, now=NOW) is None
    )
    assert bookings.start_of(None, until=NOW + DAY, now=NOW) is None


def test_what_begins_at_once_by_its_nature_is_not_booked(here: Scene) -> None:
    spec = {
        "cluster": "training",
        "name": "corpus",
        "gib": 100,
        "access": "ReadWriteMany",
    }
    with pytest.raises(BadInput) as refused:
        resolve("volume", spec, team=here.team, until=NEXT_WEEK + DAY, starts=NEXT_WEEK)
    assert refused.value.code == "begins_at_once"


@pytest.mark.slow
def test_the_api_books_says_from_when_it_fits_and_cancels(here: Scene) -> None:
    caller, now = Caller(here.ada), timezone.now().replace(microsecond=0)
    begins, until = now + 7 * DAY, now + 9 * DAY
    body = {
        "team": "vision",
        "flavor": "training/a100",
        "gpus": 2,
        "starts_at": begins.isoformat(),
        "until": until.isoformat(),
        "reason": REASON,
    }
    preview = caller.post("requests/preview/", body).json()
    assert (preview["answer"]["outcome"], preview["fits_from"]) == ("automatic", None)
    assert preview["answer"]["usd"] == str(
        (2 * 48 * here.flavor.price_per_gpu_hour).quantize(Decimal("0.01"))
    )
    made = caller.post("requests/", body, key="book").json()
    assert (made["stage"], datetime.fromisoformat(made["starts_at"])) == (
        "booked",
        begins,
    )
    [row] = caller.get("allocations/?team=vision").json()["results"]
    assert (row["state"], row["begun_at"], row["hindrance"]) == ("booked", None, "")
    assert caller.get("allocations/?team=vision&held=true").json()["results"] == []
    full = caller.post("requests/preview/", body | {"gpus": 8}).json()
    assert datetime.fromisoformat(full["fits_from"]) >= until
    refused = caller.post(
        "requests/", body | {"starts_at": (now - DAY).isoformat()}, key="past"
    )
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (
        422,
        "/starts_at",
    )
    gone = caller.post(f"requests/{made['id']}/let-go/", {}, key="cancel")
    assert (gone.status_code, gone.json()["stage"]) == (200, "ended")


def test_the_form_books_and_one_click_counts_from_when_it_begins(
    here: Scene, client: Client
) -> None:
    client.force_login(here.ada)
    begins = (timezone.now() + 7 * DAY).replace(minute=0, second=0, microsecond=0)
    said = {
        "team": "vision",
        "flavor": "training/a100",
        "gpus": "2",
        "purpose": "training",
        "starts_at": begins.strftime(INPUT),
        "until": begins.strftime(INPUT),
    }
    shown = client.post("/requests/preview/gpus", said | {"quick": "3"})
    assert shown.context["form"]["until"].value() == (begins + 3 * DAY).strftime(INPUT)
    assert "It begins by itself on" in shown.content.decode()
    wrong = client.post("/requests/preview/gpus", said)
    said_at = "From (UTC): It has to begin before it ends."
    assert wrong.context["lacks"] == [{"text": said_at, "field": "starts_at"}]
    until = (begins + 2 * DAY).strftime(INPUT)
    sent = client.post("/requests/new/gpus", said | {"until": until, "token": "once"})
    assert sent.status_code == 302
    assert Allocation.objects.booked().get().starts_at == begins


def test_its_page_says_when_it_begins_and_offers_to_cancel_it(
    here: Scene, client: Client
) -> None:
    booked(here)
    client.force_login(here.ada)
    request = Request.objects.get()
    page = client.get(f"/requests/{request.pk}/").content.decode()
    assert "Booked" in page
    assert "begins" in page
    assert "Cancel the booking" in page
    team = client.get("/teams/vision/").content.decode()
    assert "Booked" in team
    client.post(f"/requests/{request.pk}/let-go")
    assert not Allocation.objects.booked().exists()


def test_a_platform_lead_who_cancels_a_booking_says_why_and_the_team_is_told(
    here: Scene, client: Client
) -> None:
    booked(here)
    request = Request.objects.get()
    lead = Caller(here.priya)
    refused = lead.post(f"requests/{request.pk}/let-go/", {}, key="silent")
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (
        422,
        "reason_needed",
    )
    assert Allocation.objects.booked().exists()
    why = "The nodes are moved on that day."
    gone = lead.post(f"requests/{request.pk}/let-go/", {"reason": why}, key="said")
    assert (gone.status_code, gone.json()["stage"]) == (200, "ended")
    [told] = Notice.objects.filter(kind="allocation_ending", person=here.ada)
    assert why in told.message["sentence"]
    client.force_login(here.ada)
    page = client.get(f"/requests/{request.pk}/").content.decode()
    assert "Booking cancelled for the platform" in page
    assert why in page


def test_what_is_booked_is_compared_with_what_is_held_when_it_begins(
    here: Scene, client: Client
) -> None:
    """What ends before that is not added, and what begins before that is."""
    now = timezone.now().replace(microsecond=0)
    factories.request(here.ada, here.tenancy, here.flavor, gpus=2, days=3, now=now)
    begins, until = now + 7 * DAY, now + 9 * DAY
    body = {
        "team": "vision",
        "flavor": "training/a100",
        "gpus": 2,
        "starts_at": begins.isoformat(),
        "until": until.isoformat(),
        "reason": REASON,
    }
    caller = Caller(here.ada)
    shown = caller.post("requests/preview/", body).json()
    assert shown["quota"] == {"before": 0, "after": 2}
    assert Decimal(shown["usd_per_day"]["before"]) == 0
    form = {
        **body,
        "starts_at": begins.strftime(INPUT),
        "until": until.strftime(INPUT),
        "purpose": "training",
        "token": "one",
    }
    client.force_login(here.ada)
    page = client.post("/requests/preview/gpus", form).content.decode()
    assert "0 GPUs" in page
    assert "2 GPUs" in page


def test_who_decides_is_told_what_stays_free_in_its_time_not_what_is_free_today(
    here: Scene,
) -> None:
    grant(here, 4, until=NOW + 3 * DAY)
    asked = submit(wanted(here, 3), by=here.ada, now=NOW)
    assert asked.state == State.WAITING
    facts = dict(Notice.objects.filter(kind="request_waiting").latest("id").said.facts)
    assert facts["Stays free"] == "5 of 8 in its time"


def test_who_decides_reads_from_when_on_it_is_asked_for(here: Scene) -> None:
    begins = timezone.now() + 7 * DAY
    asked = submit(
        wanted(here, 3, starts=begins, now=timezone.now()),
        by=here.ada,
        now=timezone.now(),
    )
    client = Client()
    client.force_login(here.priya)
    page = client.get(f"/approvals/{asked.pk}/").content.decode()
    assert f"in Training from {moment(begins, timezone.now())} until " in page
