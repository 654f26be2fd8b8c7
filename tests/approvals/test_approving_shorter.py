"""What people approve for a shorter time than was asked: its end, its money, who decides, what people are told."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from allocations.models import Allocation, Budget
from approvals.conversation.actions import edit
from approvals.decisions.actions import approve, ask_back, reject
from approvals.decisions.bulk import effect_of
from approvals.decisions.statistics import statistics
from approvals.fulfilment import free_again
from approvals.judging import reevaluation
from approvals.judging.asked import wanted_of
from approvals.judging.earlier_requests import gather
from approvals.models import Request, Step
from approvals.renewals import renewing
from approvals.requests.actions import answer, lapse, submit
from approvals.requests.listing import with_all
from audit.models import Event
from fleet.models import Flavor
from notices.models import Notice
from policy.document import LEADERSHIP, LEADS, Policy, Route, Thresholds
from tests import factories
from tests.approvals import shop
from tests.scene import DAY, HOUR, NOW, REASON, Scene, books, ledger
from web.fields import INPUT
from web.refusals import BadInput, Conflict, NoRight, Refused, Stale

pytestmark = pytest.mark.django_db
ALL, SOME = NOW + 20 * DAY, NOW + 10 * DAY


def fresh(request: Request) -> Request:
    return Request.objects.get(pk=request.pk)


def refusal(action: Callable[[], object]) -> Refused:
    with pytest.raises(Refused) as refused:
        action()
    return refused.value


def last_told(person: Any) -> dict[str, Any]:
    """The newest notice of somebody, its facts by their labels."""
    said = Notice.objects.filter(person=person).latest("id").said
    return {"title": said.title, "sentence": said.sentence, **dict(said.facts)}


def page(person: Any, path: str) -> str:
    client = Client()
    client.force_login(person)
    response = client.get(path)
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def shorten(
    request: Request, by: Any, until: datetime, *, version: int = 1, **fields: Any
) -> Request:
    """Approve the open step until an earlier end."""
    now = fields.pop("now", NOW)
    return approve(
        request.pk, by=by, expected_version=version, until=until, now=now, **fields
    )


def test_what_is_granted_ends_at_the_earlier_end_and_costs_until_then(
    scene: Scene,
) -> None:
    request = scene.ask(5, days=20)
    assert sum(books(scene.team).values()) == Decimal(5 * 24 * 20)
    done = shorten(request, scene.priya, SOME)
    held = Allocation.objects.get()
    assert (done.state, done.until, done.approved_until, done.until_now) == (
        "approved",
        ALL,
        SOME,
        SOME,
    )
    assert (held.until, held.gpus) == (SOME, 5)
    vote = request.decisions.get()
    assert (vote.until, vote.usd) == (SOME, Decimal(5 * 24 * 10))
    # All of it lies in November: the money of December is free again.
    assert books(scene.team) == ledger(scene.team)
    assert sum(books(scene.team).values()) == Decimal(5 * 24 * 10)
    assert books(scene.team)["2026-12"] == 0


def test_no_date_is_told_after_the_end_at_which_what_waits_lapses(scene: Scene) -> None:
    now = timezone.now()
    request = scene.ask(9, days=20, now=now)
    end = now + 2 * DAY
    shorten(request, scene.priya, end, now=now)
    left = fresh(request)
    step = left.current_steps[-1]
    assert step.due_at is not None
    Step.objects.filter(pk=step.pk).update(due_at=end + HOUR, escalate_at=end + DAY)
    assert left.lapses == end
    context = signed_in(scene.elena).get(f"/approvals/{request.pk}/").context
    assert [part["title"] for part in context["next"]] == [
        "Engineering leadership are reminded",
        "Lapses, if nobody has decided",
    ]
    shown = signed_in(scene.ada).get(f"/requests/{request.pk}/").context
    assert shown["waiting"]["due"] == end


@pytest.mark.slow
def test_the_approval_page_says_that_the_policy_may_approve_it_meanwhile(
    scene: Scene,
) -> None:
    Flavor.objects.filter(pk=scene.flavor.pk).update(allocated=24)
    by_people, by_itself = (
        factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=gpus)
        for gpus in (9, 1)
    )
    words = "The policy approves it once every rule holds: reject what you do not want"
    assert [
        words
        in [
            part["title"]
            for part in signed_in(scene.priya)
            .get(f"/approvals/{each.pk}/")
            .context["next"]
        ]
        for each in (by_itself, by_people)
    ] == [True, False]


def test_what_is_rejected_after_a_vote_for_less_was_asked_as_it_was_asked(
    scene: Scene,
) -> None:
    request = scene.ask(12, days=20)
    left = shorten(request, scene.priya, SOME, count=10)
    assert (left.until_now, left.count_now) == (SOME, 10)
    reject(
        left.pk,
        by=scene.elena,
        expected_version=left.version,
        reason="No room for so many.",
        because="capacity",
        now=NOW,
    )
    over = fresh(request)
    assert (over.until_now, over.count_now, over.is_less) == (ALL, 12, False)
    assert "Asked until" not in page(scene.ada, f"/requests/{request.pk}/")
    assert free_again.sweep(NOW + 2 * DAY)
    told = last_told(scene.ada)
    assert "12 × A100" in told["title"]
    assert "instead of" not in told["Until"]


def test_fewer_and_shorter_go_together(scene: Scene) -> None:
    request = scene.ask(5, days=20)
    done = shorten(request, scene.priya, SOME, count=2)
    held = Allocation.objects.get()
    assert (done.approved_count, held.gpus, held.until) == (2, 2, SOME)
    assert scene.held_usd() == Decimal(2 * 24 * 10)


@pytest.mark.slow
@pytest.mark.parametrize(
    "until",
    [
        pytest.param(ALL + HOUR, id="later than asked"),
        pytest.param(NOW + DAY - timedelta(minutes=1), id="within a day"),
        pytest.param(NOW - HOUR, id="in the past"),
    ],
)
def test_it_approves_no_end_out_of_range(scene: Scene, until: datetime) -> None:
    request = scene.ask(5, days=20)
    refused = refusal(lambda: shorten(request, scene.priya, until))
    assert (type(refused), refused.code, refused.field) == (
        BadInput,
        "end_out_of_range",
        "until",
    )
    assert refused.message == (
        "Approve an end between Sat 21 Nov, 12:00 UTC and Thu 10 Dec, 12:00 UTC."
    )
    assert (fresh(request).version, request.decisions.count()) == (1, 0)
    assert shorten(request, scene.priya, NOW + DAY).approved_until == NOW + DAY


def test_what_lasts_a_day_at_most_is_not_shortened(scene: Scene) -> None:
    request = scene.ask(5, days=1)
    refused = refusal(lambda: shorten(request, scene.priya, NOW + DAY / 2))
    assert refused.message == (
        "It cannot be approved for a shorter time: it ends on Sat 21 Nov, 12:00 UTC, "
        "and Sat 21 Nov, 12:00 UTC would be the earliest end."
    )
    # The end that was asked for is no shorter time.
    assert shorten(request, scene.priya, NOW + DAY).state == "approved"


def test_nobody_shortens_their_own_request_or_what_they_have_not_seen(
    scene: Scene,
) -> None:
    factories.join(scene.team, scene.priya)
    own = submit(scene.wanted(5, days=20), by=scene.priya, now=NOW)
    assert refusal(lambda: shorten(own, scene.priya, SOME)).code == "self_approval"
    request = scene.ask(5, days=20)
    assert isinstance(refusal(lambda: shorten(request, scene.ada, SOME)), NoRight)
    ask_back(request.pk, by=scene.marcus, expected_version=1, question="Why?", now=NOW)
    assert isinstance(refusal(lambda: shorten(request, scene.priya, SOME)), Stale)
    assert fresh(request).cut_until is None


def test_an_end_that_has_passed_is_refused_as_such(scene: Scene) -> None:
    request = scene.ask(5, days=3)
    later = NOW + 4 * DAY
    refused = refusal(lambda: shorten(request, scene.priya, NOW + 2 * DAY, now=later))
    assert (type(refused), refused.code) == (Conflict, "too_late")


def test_the_next_step_decides_on_the_shorter_time_with_the_money_of_that_alone(
    scene: Scene,
) -> None:
    request = scene.ask(12, days=20)
    half = shorten(request, scene.priya, SOME)
    assert (half.state, half.cut_until, half.approved_until) == ("waiting", SOME, None)
    assert (half.lapses_at, half.until) == (SOME, ALL)
    assert scene.held_usd() == Decimal(12 * 24 * 10)
    told = last_told(scene.elena)
    assert told["Until"] == ("Mon 30 Nov, 12:00 UTC instead of Thu 10 Dec, 12:00 UTC")
    assert told["Cost"] == "$2,880"
    refused = refusal(lambda: shorten(half, scene.elena, SOME + DAY, version=2))
    assert refused.message.endswith("and Mon 30 Nov, 12:00 UTC.")
    done = approve(half.pk, by=scene.elena, expected_version=2, now=NOW)
    assert (done.approved_until, Allocation.objects.get().until) == (SOME, SOME)
    assert scene.held_usd() == Decimal(12 * 24 * 10)


def test_the_next_step_can_shorten_it_further(scene: Scene) -> None:
    request = scene.ask(12, days=20)
    shorten(request, scene.priya, SOME)
    done = shorten(request, scene.elena, NOW + 5 * DAY, version=2)
    assert (done.cut_until, done.approved_until) == (SOME, NOW + 5 * DAY)
    assert scene.held_usd() == Decimal(12 * 24 * 5)


def by_length(days: int) -> None:
    """Leadership decides, too, about five GPUs for longer than so many days."""
    long = Route(
        name="Long", usd_from=Decimal(5 * 24 * days + 1), steps=(LEADS, LEADERSHIP)
    )
    factories.policy(
        replace(Policy(), routes=(long, Route(name="Rest", steps=(LEADS,)))),
        now=NOW - DAY,
    )


def test_a_step_that_the_shorter_time_does_not_need_is_dropped(scene: Scene) -> None:
    by_length(10)
    request = scene.ask(5, days=20)
    assert [step.seat for step in request.steps.all()] == [
        "platform_leads",
        "engineering_leadership",
    ]
    assert shorten(request, scene.priya, SOME).state == "approved"
    assert [step.seat for step in request.steps.all()] == ["platform_leads"]


def test_it_waits_no_longer_than_its_new_end(scene: Scene) -> None:
    request = scene.ask(12, days=20)
    shorten(request, scene.priya, NOW + 2 * DAY)
    ask_back(request.pk, by=scene.elena, expected_version=2, question="Why?", now=NOW)
    assert fresh(request).lapses == NOW + 2 * DAY
    answer(request.pk, by=scene.ada, text="For the review.", now=NOW + DAY)
    assert fresh(request).lapses == NOW + 2 * DAY
    late = refusal(
        lambda: approve(
            request.pk, by=scene.elena, expected_version=4, now=NOW + 2 * DAY
        )
    )
    assert late.code == "too_late"
    assert lapse(request.pk, now=NOW + 2 * DAY)
    assert scene.held_usd() == 0


def test_an_open_question_is_answered_before_the_new_end(scene: Scene) -> None:
    request = scene.ask(5, days=20)
    request.steps.update(quorum=2)
    ask_back(request.pk, by=scene.marcus, expected_version=1, question="Why?", now=NOW)
    assert fresh(request).lapses == NOW + 14 * DAY
    half = shorten(request, scene.priya, NOW + 2 * DAY, version=2)
    assert (half.turn, half.lapses) == ("requester", NOW + 2 * DAY)


def test_who_changes_it_asks_for_all_of_its_time_again(scene: Scene) -> None:
    request = scene.ask(12, days=20)
    shorten(request, scene.priya, SOME)
    edit(
        request.pk, scene.wanted(11, days=20), by=scene.ada, expected_version=2, now=NOW
    )
    again = fresh(request)
    assert (again.until, again.cut_until, again.until_now) == (ALL, None, ALL)
    assert scene.held_usd() == Decimal(11 * 24 * 20)


def test_the_policy_grants_what_is_left_of_it_and_no_more(scene: Scene) -> None:
    request = scene.ask(12, days=20)
    shorten(request, scene.priya, NOW + 3 * DAY)
    wide = Thresholds(
        automatic_gpus=24,
        window_gpus_team=100,
        window_gpus_person=None,
        automatic_usd=Decimal(10_000),
        automatic_gpu_hours=None,
        automatic_days=3,
    )
    factories.policy(replace(Policy(), thresholds=wide), now=NOW + HOUR)
    assert reevaluation.sweep(NOW + 2 * HOUR) == [request.pk]
    done = fresh(request)
    assert (done.state, done.approved_until) == ("approved", NOW + 3 * DAY)
    assert Allocation.objects.get().until == NOW + 3 * DAY
    assert last_told(scene.ada)["sentence"].endswith(
        "Granted until Mon 23 Nov, 12:00 UTC instead of Thu 10 Dec, 12:00 UTC."
    )


def test_the_record_says_what_was_asked_what_was_granted_and_by_whom(
    scene: Scene,
) -> None:
    request = scene.ask(12, days=20)
    shorten(request, scene.priya, SOME)
    approve(request.pk, by=scene.elena, expected_version=2, now=NOW)
    events = Event.objects.filter(kind__in=["request.step_done", "request.approved"])
    assert [
        (event.actor_name, event.details["until"], event.details["asked_until"])
        for event in events.order_by("seq")
    ] == [
        ("Priya Raman", SOME.isoformat(), ALL.isoformat()),
        ("Elena Petrova", SOME.isoformat(), ALL.isoformat()),
    ]


def test_the_requester_is_told_until_when_instead_of_when(scene: Scene) -> None:
    request = scene.ask(5, days=20)
    shorten(request, scene.priya, SOME, reason="The review is in November.")
    told = last_told(scene.ada)
    assert told["sentence"] == (
        "Priya Raman approved it: The review is in November. "
        "Granted until Mon 30 Nov, 12:00 UTC instead of Thu 10 Dec, 12:00 UTC."
    )
    assert told["Until"] == "Mon 30 Nov, 12:00 UTC instead of Thu 10 Dec, 12:00 UTC"
    assert told["Cost"] == "$1,200"


def asked_now(scene: Scene, gpus: int, *, days: float = 20) -> Request:
    return factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=gpus, days=days
    )


def test_its_pages_say_so(scene: Scene) -> None:
    request = asked_now(scene, 5)
    until = (request.until - 10 * DAY).replace(second=0, microsecond=0)
    shorten(request, scene.priya, until, now=timezone.now())
    shown = page(scene.ada, f"/requests/{request.pk}/")
    done = fresh(request)
    before, after = words(done.until), words(until)
    assert (
        f"Granted until {after} instead of {before}, as Priya Raman decided." in shown
    )
    assert f"Approved until {after} instead of {before} as platform leads" in shown
    assert "Asked until" in shown
    assert f"; asked until {before.rpartition(', ')[0]}" in shown
    lead = page(scene.priya, f"/approvals/{request.pk}/")
    assert f"until {after} ({before} was asked)" in lead


def words(at: datetime) -> str:
    """A moment as pages write it."""
    year = "" if at.year == timezone.now().year else f" {at.year}"
    return f"{at:%a} {at.day} {at:%b}{year}, {at:%H:%M} UTC"


@pytest.mark.slow
def test_what_waits_ends_everywhere_where_the_step_before_left_it(
    scene: Scene,
) -> None:
    request = asked_now(scene, 12)
    until = request.until - 10 * DAY
    shorten(request, scene.priya, until, now=timezone.now())
    waiting = list(with_all(Request.objects.filter(pk=request.pk)))
    assert effect_of(waiting, now=timezone.now()).usd < 12 * 24 * 10 + 1
    shown = page(scene.elena, f"/requests/{request.pk}/")
    assert f"until {words(until)}" in shown
    assert "Approved so far until" in shown
    for path in ("/approvals/", f"/approvals/{request.pk}/"):
        assert f'datetime="{until:%Y-%m-%dT%H:%M}' in page(scene.elena, path) or (
            words(until) in page(scene.elena, path)
        ), path


def test_it_counts_as_approved_for_less(scene: Scene) -> None:
    request, whole = scene.ask(5, days=20), scene.ask(3, days=20)
    shorten(request, scene.priya, SOME)
    approve(whole.pk, by=scene.priya, expected_version=1, now=NOW)
    assert statistics(days=30, now=NOW + HOUR).approved_less == 1


def test_the_route_of_the_next_ask_counts_the_money_of_the_shorter_time(
    scene: Scene,
) -> None:
    request = scene.ask(5, days=20)
    shorten(request, scene.priya, SOME)
    [earlier] = gather(
        scene.wanted(1), person=scene.ada, since=NOW - DAY, now=NOW + HOUR
    )
    assert (earlier.gpus, earlier.usd) == (5, Decimal(5 * 24 * 10))


def test_what_was_shortened_and_then_rejected_is_offered_again_as_it_was_asked(
    scene: Scene,
) -> None:
    request = scene.ask(12, days=20)
    shorten(request, scene.priya, NOW + DAY)
    reject(
        request.pk,
        by=scene.elena,
        expected_version=2,
        reason="None are free.",
        because="capacity",
        now=NOW,
    )
    later = NOW + 2 * DAY
    assert free_again.sweep(later) == [request.pk]
    assert wanted_of(fresh(request)).until == ALL


def test_what_is_booked_later_is_no_matter_for_a_shorter_time(scene: Scene) -> None:
    """All are booked from the tenth day on: only what ends before that can be granted."""
    Flavor.objects.filter(pk=scene.flavor.pk).update(gpus_total=12, gpus_ready=12)
    booked = booking(scene, 12, starts=SOME, days=5)
    approve_all(scene, booked)
    request = scene.ask(5, days=20)
    refused = refusal(
        lambda: approve(request.pk, by=scene.priya, expected_version=1, now=NOW)
    )
    assert refused.code == "not_enough_free"
    assert shorten(request, scene.priya, SOME).state == "approved"


def booking(scene: Scene, gpus: int, *, starts: datetime, days: int) -> Request:
    wanted = replace(scene.wanted(gpus), starts=starts, until=starts + days * DAY)
    return submit(wanted, by=scene.ada, now=NOW)


def approve_all(scene: Scene, request: Request) -> None:
    """By each seat of its route."""
    for by in (scene.priya, scene.elena):
        now = fresh(request)
        if now.state == "waiting":
            approve(now.pk, by=by, expected_version=now.version, now=NOW)


def test_a_booking_lasts_a_day_at_least_and_ends_earlier(scene: Scene) -> None:
    request = booking(scene, 5, starts=NOW + 7 * DAY, days=6)
    refused = refusal(lambda: shorten(request, scene.priya, NOW + 7 * DAY + HOUR))
    assert "between Sat 28 Nov, 12:00 UTC and" in refused.message
    shorten(request, scene.priya, NOW + 9 * DAY)
    held = Allocation.objects.get()
    assert (held.is_booked, held.starts_at, held.until) == (
        True,
        NOW + 7 * DAY,
        NOW + 9 * DAY,
    )
    assert scene.held_usd() == Decimal(5 * 24 * 2)


def kept_longer(scene: Scene, until: datetime, *, now: datetime) -> Request:
    """Four GPUs that are held for three days, and that people decide to keep longer."""
    first = scene.ask(4, days=3)
    approve(first.pk, by=scene.priya, expected_version=1, now=NOW)
    found = Request.objects.select_related(
        "team", "flavor__cluster", "tenancy__team", "tenancy__cluster"
    ).get(pk=first.pk)
    longer = renewing.wanted(found, until=until, reason=REASON, now=now)
    return submit(longer, by=scene.ada, now=now)


def test_a_renewal_ends_earlier_and_never_before_the_present_end(scene: Scene) -> None:
    now = NOW + 2 * DAY
    request = kept_longer(scene, ALL, now=now)
    assert request.state == "waiting"
    early = refusal(lambda: shorten(request, scene.priya, NOW + 3 * DAY, now=now))
    assert early.message == (
        "Approve an end between Tue 24 Nov, 12:00 UTC and Thu 10 Dec, 12:00 UTC."
    )
    shorten(request, scene.priya, SOME, now=now)
    [held] = Allocation.objects.live()
    assert (held.hold_id, held.until, held.gpus) == (request.hold_id, SOME, 4)
    assert sum(books(scene.team).values()) == Decimal(4 * 24 * 10)
    assert books(scene.team) == ledger(scene.team)


@pytest.mark.slow
@pytest.mark.parametrize("offering", [*shop.SPECS])
def test_every_offering_can_be_granted_for_a_shorter_time(
    scene: Scene, offering: str
) -> None:
    done = request = submit(
        shop.wanted(scene, offering, until=ALL), by=scene.ada, now=NOW
    )
    assert request.state == "waiting"
    for by in (scene.priya, scene.elena):
        if done.state == "waiting":
            done = shorten(done, by, SOME, version=done.version)
    assert (done.state, done.approved_until) == ("approved", SOME)
    assert Allocation.objects.get(hold=request.hold_id).until == SOME


def test_the_budget_that_is_too_small_for_all_of_it_may_do_for_less(
    scene: Scene,
) -> None:
    for month in (11, 12):
        Budget.objects.create(
            team=scene.team,
            month=NOW.date().replace(month=month, day=1),
            limit_usd=1300,
        )
    request = scene.ask(12, days=20)
    assert scene.held_usd() == 0
    half = shorten(request, scene.priya, NOW + 4 * DAY)
    assert (half.state, scene.held_usd()) == ("waiting", Decimal(12 * 24 * 4))


def form(request: Request, **values: Any) -> dict[str, Any]:
    return {"version": request.version, "do": "less", "reason": "", **values}


def signed_in(person: Any) -> Client:
    client = Client()
    client.force_login(person)
    return client


@pytest.mark.slow
@pytest.mark.parametrize("fields", [{}, {"count": "5"}, {"count": "2"}])
def test_the_form_shortens_alone_or_with_fewer(
    scene: Scene, fields: dict[str, str]
) -> None:
    request = asked_now(scene, 5)
    until = (request.until - 10 * DAY).replace(second=0, microsecond=0)
    answer_ = signed_in(scene.priya).post(
        f"/approvals/{request.pk}/",
        form(request, until=until.strftime(INPUT), **fields),
    )
    done = fresh(request)
    assert answer_.status_code == 302
    assert (done.state, done.approved_until) == ("approved", until)
    assert done.approved_count == int(fields.get("count", 5))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "told"),
    [
        pytest.param({"count": "", "until": "UNTIL"}, "Say how many.", id="no number"),
        pytest.param({"count": "2", "until": ""}, "Say until when.", id="no end"),
        pytest.param(
            {"count": "5", "until": "ASKED"},
            "Say fewer than 5 or an earlier end, or approve all of it.",
            id="all of both",
        ),
        pytest.param(
            {"count": "5", "until": "2026-13-01T00:00"},
            "Write a day and a time",
            id="no day",
        ),
    ],
)
def test_an_empty_field_is_never_taken_for_all_of_it(
    scene: Scene, fields: dict[str, str], told: str
) -> None:
    request = asked_now(scene, 5)
    ends = {
        "UNTIL": (request.until - DAY).strftime(INPUT),
        "ASKED": request.until.strftime(INPUT),
    }
    sent = {name: ends.get(value, value) for name, value in fields.items()}
    answer_ = signed_in(scene.priya).post(
        f"/approvals/{request.pk}/", form(request, **sent)
    )
    assert answer_.status_code == 422
    assert told in answer_.content.decode()
    assert fresh(request).state == "waiting"


def checked(scene: Scene, request: Request, **values: Any) -> dict[str, Any]:
    """What the page says that approving so much would change."""
    answer_ = signed_in(scene.priya).post(
        f"/approvals/{request.pk}/?check=1", form(request, **values)
    )
    assert answer_.status_code == 200
    assert (fresh(request).version, request.decisions.count()) == (request.version, 0)
    return dict(answer_.context["less"]["effect"])


def test_the_page_says_beforehand_what_a_shorter_time_changes(scene: Scene) -> None:
    request = asked_now(scene, 2)
    until = (request.until - 5 * DAY).replace(second=0, microsecond=0)
    found = checked(scene, request, count="2", until=until.strftime(INPUT))
    assert [row["label"] for row in found["rows"]] == ["Ends", "Cost"]
    assert found["rows"][0]["after"] == words(until)
    assert found["rows"][1]["before"] == "$960"
    assert found["rows"][1]["after"] in ("$719", "$720")
    assert "people decide beyond 14 days" in found["words"][-1]
    week = (timezone.now() + 7 * DAY - HOUR).strftime(INPUT)
    assert checked(scene, request, count="1", until=week)["words"] == [
        "Every rule would hold."
    ]


def test_the_page_names_two_rules_and_says_how_many_more_there_are(
    scene: Scene,
) -> None:
    request = asked_now(scene, 9)
    later = (request.until - DAY).strftime(INPUT)
    [still] = [
        line
        for line in checked(scene, request, count="8", until=later)["words"]
        if line.startswith("Still asks for people: ")
    ]
    assert still.count(";") == 2
    assert "; and " in still
    assert still.endswith(" more.")


def test_the_page_says_who_would_not_have_to_decide(scene: Scene) -> None:
    by_length(10)
    request = asked_now(scene, 5)
    until = request.until - 11 * DAY
    found = checked(scene, request, count="5", until=until.strftime(INPUT))
    assert "Engineering leadership would not have to decide any more." in found["words"]
    longer = request.until - DAY
    found = checked(scene, request, count="5", until=longer.strftime(INPUT))
    assert not any("would not have to decide" in line for line in found["words"])


@pytest.mark.slow
def test_the_page_says_why_an_end_is_out_of_range(scene: Scene) -> None:
    request = asked_now(scene, 5)
    soon = (timezone.now() + HOUR).strftime(INPUT)
    assert checked(scene, request, count="5", until=soon)["problem"].startswith(
        "Approve an end between "
    )
    same = request.until.strftime(INPUT)
    assert (
        checked(scene, request, count="5", until=same)["problem"]
        == "This is all that is asked for."
    )
    assert (
        checked(scene, request, count="6", until=same)["problem"]
        == "Approve between 1 and 5."
    )


def test_the_form_starts_with_the_nearest_automatic_end(scene: Scene) -> None:
    request = asked_now(scene, 1)
    less = signed_in(scene.priya).get(f"/approvals/{request.pk}/").context["less"]
    assert (less["fewer"], less["shorter"], less["count"]) == (False, True, 1)
    assert less["words"].startswith("Automatic if it ends ")
    assert less["effect"]["words"] == ["Every rule would hold."]
    answer_ = signed_in(scene.priya).post(
        f"/approvals/{request.pk}/", form(request, until=less["until"])
    )
    assert answer_.status_code == 302
    assert fresh(request).approved_until == datetime.fromisoformat(
        f"{less['until']}+00:00"
    )


def test_the_form_says_nothing_of_changes_before_there_is_one(scene: Scene) -> None:
    """People always decide about a namespace for production: no end makes it automatic."""
    factories.cluster("dev")
    asked = submit(
        replace(
            shop.wanted(scene, "namespace", environment="production"),
            until=timezone.now() + 5 * DAY,
        ),
        by=scene.ada,
        now=timezone.now(),
    )
    less = signed_in(scene.priya).get(f"/approvals/{asked.pk}/").context["less"]
    assert (less["fewer"], less["shorter"], less["effect"]) == (False, True, None)
    assert less["until"] == less["latest"] == asked.until.strftime(INPUT)


def test_what_lasts_a_day_at_most_offers_no_earlier_end(scene: Scene) -> None:
    request = asked_now(scene, 5, days=1)
    less = signed_in(scene.priya).get(f"/approvals/{request.pk}/").context["less"]
    assert (less["fewer"], less["shorter"], less["most"]) == (True, False, 4)
