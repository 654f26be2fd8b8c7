"""Several requests together: what they add up to, and each decided by itself."""

import time
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from allocations.models import Allocation
from approvals.conversation.actions import edit
from approvals.decisions import bulk
from approvals.decisions.actions import approve
from approvals.decisions.bulk import Chosen
from approvals.models import Decision, Request
from approvals.renewals import renewing
from approvals.requests.actions import submit
from approvals.requests.listing import with_all
from audit.events import Kind
from audit.models import Event, RefusalCount
from policy.document import LEADS, Policy, Route
from tests import factories
from tests.approvals.shop import wanted
from tests.calling import Caller
from tests.scene import DAY, Scene
from web import refusal_events
from web.refusals import BadInput

pytestmark = pytest.mark.django_db


def ask(
    scene: Scene, gpus: int, *, by: User | None = None, hours: float = 1
) -> Request:
    now = timezone.now() - timedelta(hours=hours)
    return factories.request(
        by or scene.ada, scene.tenancy, scene.flavor, gpus=gpus, days=2, now=now
    )


def effect(*asked: Request) -> bulk.Effect:
    rows = with_all(
        Request.objects.filter(pk__in=[each.pk for each in asked])
    ).prefetch_related("decisions")
    return bulk.effect_of(list(rows), now=timezone.now())


def chosen(request: Request, verdict: str = "approve", **said: object) -> Chosen:
    return Chosen(request.pk, request.version, verdict, **said)  # type: ignore[arg-type]


def test_it_adds_up_gpus_and_money(scene: Scene) -> None:
    found = effect(ask(scene, 3), ask(scene, 5))
    (pool,) = found.pools
    assert (found.gpus, pool.gpus, pool.flavor.free, pool.after) == (8, 8, 24, 16)
    assert (
        abs(found.usd - 8 * 47) < 8
    )  # a GPU costs a dollar an hour here, and an hour of the two days is over
    assert sum(purse.before - purse.after for purse in found.purses) == found.usd
    assert found.too_much == []


def test_of_a_renewal_only_what_is_new_counts(scene: Scene) -> None:
    now = timezone.now()
    first = factories.request(
        scene.ada, scene.tenancy, scene.flavor, gpus=2, days=2, now=now
    )
    held = Allocation.objects.get(hold=first.hold_id)
    longer = renewing.wanted(
        with_all(Request.objects.filter(pk=first.pk)).get(),
        until=held.until + 60 * DAY,
        reason="It is not done yet.",
        now=now,
    )
    renewal = submit(longer, by=scene.ada, now=now)
    assert (renewal.state, first.state) == ("waiting", "approved")
    found = effect(renewal, ask(scene, 3))
    (pool,) = found.pools
    assert (found.gpus, found.kept, pool.gpus) == (3, 2, 3)
    (purse, *_) = effect(renewal).purses
    # Two GPUs at a dollar an hour, from the present end on.
    assert effect(renewal).usd == Decimal(2 * 24 * 60)
    assert purse.before >= purse.after


def test_what_they_have_set_aside_already_counts_as_left(scene: Scene) -> None:
    asked = ask(scene, 3)
    (purse, *_) = effect(asked).purses
    assert purse.before == purse.limit


def test_it_says_what_is_set_aside_already_and_what_goes_on_to_others(
    scene: Scene, client: Client
) -> None:
    asked = [ask(scene, 3, hours=0), ask(scene, 12, hours=0)]
    found = effect(*asked)
    assert abs(found.usd_set_aside - found.usd) < 15
    assert found.go_on == 1
    client.force_login(scene.priya)
    address = "/approvals/together"
    page = client.get(address, {"pk": [each.pk for each in asked]}).content.decode()
    said = " ".join(page.split())
    assert "is held for them since they were asked." in said
    assert "1 of them goes on to others who decide, too, and nothing of it is" in said
    assert "left without them" in said


def test_what_wants_two_people_goes_on_after_the_first_of_them(scene: Scene) -> None:
    two = Route(name="two", steps=(replace(LEADS, quorum=2),))
    factories.policy(Policy(routes=(two,)), now=timezone.now() - timedelta(hours=2))
    asked = ask(scene, 3)
    assert effect(asked).go_on == 1
    approve(asked.pk, by=scene.priya, expected_version=1, now=timezone.now())
    assert effect(asked).go_on == 0


def test_what_was_edited_on_the_way_counts_at_its_whole_price(scene: Scene) -> None:
    now = timezone.now()
    until = now + 5 * DAY
    before = wanted(scene, "cluster", until=until)
    request = submit(before, by=scene.ada, now=now - 5 * DAY)
    found = effect(request).usd
    larger = wanted(scene, "cluster", until=until, nodes=4)
    edit(request.pk, larger, by=scene.ada, expected_version=1, now=now)
    assert found > 0
    assert abs(effect(request).usd - 2 * found) < Decimal("0.1")


def test_it_says_what_there_is_not_enough_of(scene: Scene) -> None:
    found = effect(ask(scene, 20), ask(scene, 20))
    assert "These need 40 × A100 on Training, and 24 are free" in found.too_much


def test_gpu_hours_are_added_up_beside_the_money(scene: Scene, client: Client) -> None:
    asked = [ask(scene, 3, hours=0), ask(scene, 5, hours=0)]
    assert {purse.hours_after for purse in effect(*asked).purses} == {None}
    scene.team.budgets.update(gpu_hours_limit=Decimal(400))
    found = effect(*asked)
    # Three and five GPUs for two days, of which the asks have set aside all.
    assert (
        sum(
            (purse.hours_before or 0) - (purse.hours_after or 0)
            for purse in found.purses
        )
        == 384
    )
    assert found.purses[0].hours_before == 400
    client.force_login(scene.priya)
    page = client.get(
        "/approvals/together", {"pk": [each.pk for each in asked]}
    ).content.decode()
    assert "GPU-hours" in page
    (told, *_) = (
        Caller(scene.priya)
        .post("decisions/effect/", {"requests": [asked[0].pk]})
        .json()["budgets"]
    )
    assert told["gpu_hours_limit"] == "400.00"
    assert Decimal(told["gpu_hours_left_before"]) > Decimal(
        told["gpu_hours_left_after"]
    )
    assert any(
        "GPU-hours over its budget" in line
        for line in effect(ask(scene, 24, hours=0)).too_much
    )


@pytest.mark.slow
def test_one_that_is_refused_stops_no_other(scene: Scene) -> None:
    first, stale, own = ask(scene, 3), ask(scene, 3), ask(scene, 3, by=scene.priya)
    results = bulk.decide_many(
        [
            chosen(first),
            Chosen(stale.pk, 7, "approve"),
            chosen(own),
            Chosen(999_999, 1, "approve"),
            chosen(
                ask(scene, 4), "reject", reason="Full until Monday.", because="capacity"
            ),
        ],
        by=scene.priya,
        now=timezone.now(),
    )
    assert [(each.decided, each.code) for each in results] == [
        (True, ""),
        (False, "stale"),
        (False, "self_approval"),
        (False, "not_found"),
        (True, ""),
    ]
    assert Decision.objects.get(verdict="reject").because == "capacity"


@pytest.mark.slow
@pytest.mark.parametrize("door", ["page", "api"])
def test_deciding_together_leaves_no_more_events_than_refused_calls_one_by_one(
    scene: Scene, client: Client, door: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)
    caller = Caller(scene.mallory)
    client.force_login(scene.mallory)
    for first in (1_001, 1_051):
        numbers = range(first, first + 50)
        if door == "api":
            decisions = [
                {"request": number, "version": 1, "verdict": "approve"}
                for number in numbers
            ]
            answer = caller.post("decisions/", {"decisions": decisions})
            results = answer.json()["results"]
            assert [each["code"] for each in results] == ["not_found"] * 50
        else:
            seen = [f"{number}:1" for number in numbers]
            page = client.post(
                "/approvals/together", {"do": "approve", "seen": seen, "reason": ""}
            ).content.decode()
            assert page.count("There is no such request.") == 50
    # A call of its own counts among them.
    alone = caller.post("requests/1001/approve/", **{"If-Match": '"1"'})
    assert alone.status_code == 404
    refused = Event.objects.filter(kind=Kind.REFUSED)
    assert refused.count() == refusal_events.EVENTS_PER_MINUTE
    counted = RefusalCount.objects.values_list("actor_name", "status", "count")
    beyond = 101 - refusal_events.EVENTS_PER_MINUTE
    assert list(counted) == [(scene.mallory.name, 404, beyond)]


def test_who_is_refused_often_is_still_told_of_each_and_decides_the_others(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusal_events, "EVENTS_PER_MINUTE", 1)
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)
    stale, own, good = ask(scene, 3), ask(scene, 3, by=scene.priya), ask(scene, 3)
    results = bulk.decide_many(
        [Chosen(stale.pk, 7, "approve"), chosen(own), chosen(good)],
        by=scene.priya,
        now=timezone.now(),
    )
    assert [each.code for each in results] == ["stale", "self_approval", ""]
    assert Event.objects.filter(kind=Kind.REFUSED).count() == 1
    assert RefusalCount.objects.get().status == 403


def test_a_repetition_decides_nothing_twice(scene: Scene) -> None:
    asked = ask(scene, 3)
    for expected in (True, False):
        (result,) = bulk.decide_many(
            [chosen(asked)], by=scene.priya, now=timezone.now()
        )
        assert result.decided is expected
    assert Decision.objects.filter(request=asked, verdict="approve").count() == 1


def test_none_too_many_and_doubles_are_refused(scene: Scene) -> None:
    asked = ask(scene, 3)
    many = [Chosen(number, 1, "approve") for number in range(1, 52)]
    for wrong in ([], many, [chosen(asked), chosen(asked)]):
        with pytest.raises(BadInput):
            bulk.decide_many(wrong, by=scene.priya, now=timezone.now())
    assert not Decision.objects.exists()


@pytest.mark.slow
def test_the_last_that_does_not_fit_is_refused_in_words(scene: Scene) -> None:
    scene.team.budgets.update(limit_usd=Decimal(100_000))
    now = timezone.now() - timedelta(hours=2)
    factories.policy(Policy(routes=(Route(name="ordinary", steps=(LEADS,)),)), now=now)
    results = bulk.decide_many(
        [chosen(ask(scene, 7)) for _ in range(4)], by=scene.priya, now=timezone.now()
    )
    assert [each.decided for each in results] == [True, True, True, False]
    assert results[-1].code == "not_enough_free"


@pytest.mark.slow
def test_ten_are_decided_on_one_page(scene: Scene, client: Client) -> None:
    asked = [ask(scene, 3), ask(scene, 4)]
    client.force_login(scene.priya)
    queue = client.get("/approvals/").content.decode()
    assert all(f'name="pk" value="{each.pk}"' in queue for each in asked)
    page = client.get(
        "/approvals/together", {"pk": [each.pk for each in asked]}
    ).content.decode()
    assert "2 requests together" in page
    assert "24" in page
    assert "17" in page
    seen = [f"{each.pk}:{each.version}" for each in asked]
    done = client.post(
        "/approvals/together", {"do": "approve", "seen": seen, "reason": ""}
    )
    assert "2 of 2 decided" in done.content.decode()
    assert set(Request.objects.values_list("state", flat=True)) == {"approved"}


def test_rejecting_all_without_a_word_changes_nothing(
    scene: Scene, client: Client
) -> None:
    asked = ask(scene, 3)
    client.force_login(scene.priya)
    page = client.post(
        "/approvals/together", {"do": "reject", "seen": [f"{asked.pk}:1"], "reason": ""}
    )
    assert "Say why" in page.content.decode()
    assert Request.objects.get().state == "waiting"


def test_nobody_decides_together_what_is_not_theirs(
    scene: Scene, client: Client
) -> None:
    asked = ask(scene, 3)
    for person in (scene.ada, scene.mallory):
        client.force_login(person)
        assert (
            "Nothing is chosen"
            in client.get("/approvals/together", {"pk": asked.pk}).content.decode()
        )
        client.post(
            "/approvals/together",
            {"do": "approve", "seen": [f"{asked.pk}:1"], "reason": "x"},
        )
    assert Request.objects.get().state == "waiting"


@pytest.mark.slow
def test_the_api_gives_the_effect_and_what_became_of_each(scene: Scene) -> None:
    asked, other = ask(scene, 3), ask(scene, 4)
    priya = Caller(scene.priya)
    told = priya.post(
        "decisions/effect/", {"requests": [asked.pk, other.pk, 999_999]}
    ).json()
    assert (told["gpus"], told["pools"][0]["free_after"], told["left_out"]) == (
        7,
        17,
        [999_999],
    )
    verdicts = [
        {"request": asked.pk, "version": 1, "verdict": "approve", "count": 2},
        {"request": other.pk, "version": 9, "verdict": "reject", "reason": "No."},
    ]
    answer = priya.post("decisions/", {"decisions": verdicts})
    assert answer.status_code == 200
    assert [each["code"] for each in answer.json()["results"]] == ["", "stale"]
    assert Request.objects.get(pk=asked.pk).approved_count == 2


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"decisions": []},
        {"decisions": [{"request": 1}]},
        {"decisions": [], "more": 1},
        {
            "decisions": [
                {"request": 1, "version": 1, "verdict": "approve", "state": "approved"}
            ]
        },
        {"decisions": [{"request": True, "version": 1, "verdict": "approve"}]},
    ],
)
def test_the_api_takes_nothing_else(scene: Scene, body: dict[str, object]) -> None:
    assert Caller(scene.priya).post("decisions/", body).status_code in (400, 422)


def test_a_first_step_is_not_called_decided(scene: Scene) -> None:
    small, large = ask(scene, 3), ask(scene, 8)
    results = bulk.decide_many(
        [chosen(small), chosen(large)], by=scene.priya, now=timezone.now()
    )
    assert [(each.decided, each.waits_for) for each in results] == [
        (True, ""),
        (True, "engineering leadership"),
    ]


@pytest.mark.slow
def test_the_page_says_what_waits_for_the_next_step(
    client: Client, scene: Scene
) -> None:
    large, small = ask(scene, 8), ask(scene, 3)
    client.force_login(scene.priya)
    seen = [f"{each.pk}:{each.version}" for each in (large, small)]
    page = client.post(
        "/approvals/together", {"do": "approve", "seen": seen, "reason": ""}
    ).content.decode()
    assert "2 of 2 decided" in page
    assert "1 of them waits for the next step of the route" in page
    assert "Next to decide: " in page
    assert page.count("Approved") >= 1
