"""What teams hold: given back, ended on its date, and paid for what was held."""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from allocations import provisioners, tasks
from allocations.budgets.actions import set_budget
from allocations.ends.actions import expire, give_back
from allocations.models import Allocation, Budget, LedgerEntry
from allocations.schedule import State
from approvals.models import Request
from approvals.renewals import renewing
from approvals.requests.actions import submit
from audit.models import Event
from connectors.errors import PermanentError
from notices.models import Notice
from portal.pages.sentences import sentence
from provisioning.controller import CONTROLLER
from provisioning.models import Tenancy
from provisioning.status import write_status
from reconciling.lease import Lease
from tests import factories
from tests.scene import DAY, HOUR, NOW, Scene, books, ledger
from tests.scene import scene as make
from web.refusals import Conflict, NoRight, Refused

NOVEMBER, DECEMBER = date(2026, 11, 1), date(2026, 12, 1)


def held(scene: Scene, gpus: int = 2, *, days: float = 3) -> Allocation:
    return Allocation.objects.get(
        hold=scene.ask(gpus, days=days).hold_id, ended_at=None
    )


def desired_gpus(scene: Scene) -> int:
    return Tenancy.objects.get(pk=scene.tenancy.pk).desired.gpus()


def begin_pass(scene: Scene, *, at: datetime) -> Lease[Tenancy]:
    """A worker reads what is desired of the tenancy now."""
    lease = CONTROLLER.acquire(scene.tenancy.pk, now=at)
    assert lease is not None
    return lease


def end_pass(lease: Lease[Tenancy], *, at: datetime, refused: str = "") -> None:
    """The same worker writes that it made that true, or that the cluster refused it."""
    error = PermanentError(refused, code="refused") if refused else None
    assert write_status(
        lease.row, lease, seen=[], error=error, writes=1, now=at, requeue_at=at
    )


def state(allocation: Allocation, *, at: datetime) -> State:
    row = Allocation.objects.described().get(pk=allocation.pk)
    return provisioners.state_of(row, now=at)


def refusal(action: Callable[[], object]) -> Refused:
    with pytest.raises(Refused) as refused, transaction.atomic():
        action()
    return refused.value


def test_giving_all_back_frees_gpus_and_the_money_not_spent(scene: Scene) -> None:
    allocation, at = held(scene), NOW + DAY
    assert give_back(allocation.pk, gpus=None, by=scene.ada, now=at) is None
    allocation.refresh_from_db()
    assert (allocation.ended_at, allocation.end_reason, allocation.ended_by) == (
        at,
        "returned",
        "Ada Okafor",
    )
    assert (scene.allocated(), desired_gpus(scene)) == (0, 0)
    assert books(scene.team) == ledger(scene.team) == {"2026-11": Decimal(48)}
    event = Event.objects.get(kind="allocation.returned")
    assert (event.details["returned"], event.details["freed_usd"]) == (2, "96.00")


def test_giving_a_part_back_keeps_the_rest_until_its_date(scene: Scene) -> None:
    allocation, at = held(scene), NOW + DAY
    rest = give_back(allocation.pk, gpus=1, by=scene.ada, now=at)
    assert rest is not None
    assert rest.pk == allocation.pk
    allocation.refresh_from_db()
    assert (allocation.gpus, allocation.starts_at, allocation.until) == (
        1,
        NOW,
        NOW + 3 * DAY,
    )
    assert (allocation.ended_at, allocation.usd_per_hour) == (None, Decimal(1))
    part = allocation.parts.get()
    assert (part.gpus, part.starts_at, part.ended_at, part.end_reason) == (
        1,
        NOW,
        at,
        "returned",
    )
    assert part.hold == allocation.hold
    assert (scene.allocated(), desired_gpus(scene)) == (1, 1)
    assert books(scene.team) == ledger(scene.team) == {"2026-11": Decimal(96)}


def test_giving_back_over_a_month_frees_each_months_money(scene: Scene) -> None:
    allocation = held(scene, 1, days=12)
    assert books(scene.team) == {"2026-11": Decimal(252), "2026-12": Decimal(36)}
    give_back(allocation.pk, gpus=None, by=scene.ada, now=NOW + 2 * DAY)
    assert (
        books(scene.team)
        == ledger(scene.team)
        == {"2026-11": Decimal(48), "2026-12": Decimal(0)}
    )


@pytest.mark.parametrize("gpus", [0, -1, 3, 2**40])
def test_nobody_gives_back_what_is_not_held(scene: Scene, gpus: int) -> None:
    allocation = held(scene)
    refused = refusal(
        lambda: give_back(allocation.pk, gpus=gpus, by=scene.ada, now=NOW)
    )
    assert isinstance(refused, Conflict)
    assert (refused.code, refused.field, scene.allocated()) == ("not_held", "gpus", 2)


def test_nothing_is_given_back_twice(scene: Scene) -> None:
    allocation = held(scene)
    give_back(allocation.pk, gpus=None, by=scene.ada, now=NOW + HOUR)
    refused = refusal(
        lambda: give_back(allocation.pk, gpus=None, by=scene.ada, now=NOW + HOUR)
    )
    assert (refused.code, scene.allocated()) == ("not_held", 0)


def test_members_and_platform_leads_give_back_and_nobody_else(scene: Scene) -> None:
    allocation = held(scene)
    for person in (scene.mallory, scene.elena):
        with pytest.raises(NoRight):
            give_back(allocation.pk, gpus=1, by=person, now=NOW + HOUR)
    give_back(
        allocation.pk, gpus=None, by=scene.priya, now=NOW + HOUR, reason="A repair."
    )
    assert scene.allocated() == 0


def test_who_takes_back_what_a_team_holds_says_why_and_the_team_is_told(
    scene: Scene,
) -> None:
    allocation = held(scene)
    silent = refusal(
        lambda: give_back(
            allocation.pk, gpus=1, by=scene.priya, now=NOW + HOUR, reason=" "
        )
    )
    assert (silent.code, silent.field, scene.allocated()) == (
        "reason_needed",
        "reason",
        2,
    )
    give_back(
        allocation.pk,
        gpus=1,
        by=scene.priya,
        now=NOW + HOUR,
        reason="A node is broken.",
    )
    [told] = Notice.objects.filter(kind="allocation_ending")
    assert (told.person, told.message["title"]) == (
        scene.ada,
        "Taken back: 1 × A100 of Vision",
    )
    assert told.message["sentence"] == (
        "Priya Raman took this back for the platform: A node is broken."
    )
    event = Event.objects.get(kind="allocation.returned")
    assert event.details["taken_back_because"] == "A node is broken."
    assert sentence(event) == (
        "1 × A100 taken back for the platform",
        "Priya Raman",
    )
    over = Allocation.objects.get(ended_at__isnull=False)
    assert over.taken_back_because == "A node is broken."


def test_a_member_gives_back_without_a_reason_and_nobody_is_told(scene: Scene) -> None:
    give_back(held(scene).pk, gpus=1, by=scene.ada, now=NOW + HOUR, reason="Done.")
    assert not Notice.objects.filter(kind="allocation_ending").exists()
    assert not Allocation.objects.exclude(taken_back_because="").exists()


def test_who_asked_is_told_when_somebody_else_of_the_team_gives_it_back(
    scene: Scene,
) -> None:
    ben = factories.person("Ben Ruiz", teams=[scene.team])
    give_back(held(scene).pk, gpus=1, by=ben, now=NOW + HOUR)
    [told] = Notice.objects.filter(kind="allocation_ending")
    assert (told.person, told.message["title"]) == (
        scene.ada,
        "Ben Ruiz gave back 1 × A100 of Vision",
    )
    rest = Allocation.objects.live().get()
    scene.ada.memberships.all().delete()
    give_back(rest.pk, gpus=1, by=ben, now=NOW + HOUR)
    assert Notice.objects.filter(kind="allocation_ending").count() == 1


@pytest.mark.parametrize("late", [timedelta(0), timedelta(seconds=30)])
@pytest.mark.parametrize("gpus", [1, None])
def test_what_has_reached_its_date_is_not_given_back_any_more(
    scene: Scene, late: timedelta, gpus: int | None
) -> None:
    allocation = held(scene)
    refused = refusal(
        lambda: give_back(
            allocation.pk, gpus=gpus, by=scene.ada, now=allocation.until + late
        )
    )
    assert (refused.code, scene.held_usd()) == ("not_held", Decimal(144))


def test_it_ends_at_its_date_and_not_before(scene: Scene) -> None:
    allocation = held(scene)
    assert not expire(allocation.pk, now=allocation.until - timedelta(microseconds=1))
    assert scene.allocated() == 2
    assert expire(allocation.pk, now=allocation.until)
    allocation.refresh_from_db()
    assert (allocation.ended_at, allocation.end_reason) == (allocation.until, "expired")
    assert (scene.allocated(), desired_gpus(scene)) == (0, 0)
    assert books(scene.team) == ledger(scene.team) == {"2026-11": Decimal(144)}
    assert Event.objects.latest("seq").kind == "allocation.expired"


def test_what_ends_late_ended_on_its_date_and_only_once(scene: Scene) -> None:
    allocation = held(scene)
    assert expire(allocation.pk, now=allocation.until + 5 * DAY)
    assert not expire(allocation.pk, now=allocation.until + 6 * DAY)
    allocation.refresh_from_db()
    assert allocation.ended_at == allocation.until
    assert scene.allocated() == 0
    assert Event.objects.filter(kind="allocation.expired").count() == 1


def test_the_task_ends_what_is_due_and_leaves_the_rest(scene: Scene) -> None:
    past = datetime.now(tz=NOW.tzinfo) - 5 * DAY
    due = factories.request(scene.ada, scene.tenancy, scene.flavor, days=2, now=past)
    ahead = factories.request(scene.ada, scene.tenancy, scene.flavor, days=10, now=past)
    tasks.expire()
    assert list(Allocation.objects.live().values_list("hold", flat=True)) == [
        ahead.hold_id
    ]
    assert Allocation.objects.get(hold=due.hold_id).end_reason == "expired"


def test_a_platform_lead_sets_a_months_limit(scene: Scene) -> None:
    budget = set_budget(
        scene.team, month=NOVEMBER, limit_usd=Decimal(500), by=scene.priya
    )
    event = Event.objects.latest("seq")
    assert (budget.limit_usd, budget.held_usd) == (Decimal(500), Decimal(0))
    assert (event.kind, event.details) == (
        "budget.set",
        {
            "month": "2026-11-01",
            "followed_by": [],
            "limit_usd_before": "12000.00",
            "limit_usd": "500.00",
        },
    )


def test_a_limit_is_never_set_below_what_is_held(scene: Scene) -> None:
    held(scene)
    refused = refusal(
        lambda: set_budget(
            scene.team, month=NOVEMBER, limit_usd=Decimal("143.99"), by=scene.priya
        )
    )
    assert (refused.code, refused.field) == ("below_what_is_held", "limit_usd")
    assert (
        set_budget(
            scene.team, month=NOVEMBER, limit_usd=Decimal(144), by=scene.priya
        ).left_usd
        == 0
    )


@pytest.mark.parametrize("who", ["ada", "elena", "mallory"])
def test_nobody_else_sets_budgets(scene: Scene, who: str) -> None:
    person = getattr(scene, who)
    refused = refusal(
        lambda: set_budget(scene.team, month=NOVEMBER, limit_usd=Decimal(1), by=person)
    )
    assert isinstance(refused, NoRight)
    assert not Budget.objects.exists()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "back", "part", "expire"]),
        st.integers(1, 60),
        st.integers(1, 14),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.slow
@settings(max_examples=15)
@given(steps=STEPS)
@pytest.mark.django_db
def test_whatever_happens_the_ledger_the_books_and_the_gpus_agree(
    steps: list[tuple[str, int, int]],
) -> None:
    with transaction.atomic():
        story, now = make(), NOW
        for what, hours, days in steps:
            now += hours * HOUR
            one_step(story, what, now, days)
        live = Allocation.objects.live()
        assert story.allocated() == sum(row.gpus for row in live) == desired_gpus(story)
        assert books(story.team) == ledger(story.team)
        spent = sum((row.usd_in_all for row in Allocation.objects.all()), Decimal(0))
        # What waits for people has its money set aside too, as far as the budget has it.
        spent += sum(
            (row.usd for row in Request.objects.waiting() if held_for(row)), Decimal(0)
        )
        # Each part that was given back may round by a cent.
        assert (
            abs(story.held_usd() - spent)
            <= Decimal("0.01") * Allocation.objects.count()
        )
        assert all(row.usd for row in LedgerEntry.objects.all())
        transaction.set_rollback(True)
    assert connection.in_atomic_block


def held_for(request: Request) -> bool:
    """Whether money is set aside for a request."""
    return LedgerEntry.objects.filter(hold=request.hold).exists()


def one_step(story: Scene, what: str, now: datetime, days: int) -> None:
    """Ask for two small GPUs, or do something with the first that is held."""
    first = Allocation.objects.live().order_by("id").first()
    if what == "ask":
        factories.request(
            story.ada, story.tenancy, story.flavor, gpus=2, days=days / 3, now=now
        )
    elif first is None:
        return
    elif what == "expire":
        expire(first.pk, now=now)
    elif first.until > now:
        give_back(first.pk, gpus=1 if what == "part" else None, by=story.ada, now=now)


SECOND = timedelta(seconds=1)


@pytest.mark.usefixtures("redis")
def test_what_was_granted_during_a_pass_is_not_there_when_that_pass_ends(
    scene: Scene,
) -> None:
    first = held(scene, 1)
    running = begin_pass(scene, at=NOW + SECOND)
    second = Allocation.objects.get(hold=scene.ask(1, now=NOW + 2 * SECOND).hold_id)
    end_pass(running, at=NOW + 3 * SECOND)
    assert state(first, at=NOW + 4 * SECOND) is State.HELD
    assert state(second, at=NOW + 4 * SECOND) is State.SETTING_UP
    end_pass(
        begin_pass(scene, at=NOW + 5 * SECOND),
        at=NOW + 6 * SECOND,
        refused="quota refused by a webhook",
    )
    assert state(first, at=NOW + 7 * SECOND) is State.HELD
    assert state(second, at=NOW + 7 * SECOND) is State.FAILED
    end_pass(begin_pass(scene, at=NOW + 8 * SECOND), at=NOW + 9 * SECOND)
    assert state(second, at=NOW + 10 * SECOND) is State.HELD


@pytest.mark.usefixtures("redis")
def test_what_goes_on_under_a_renewal_is_there_though_something_else_is_set_up(
    scene: Scene,
) -> None:
    asked = scene.ask(2)
    end_pass(begin_pass(scene, at=NOW + SECOND), at=NOW + 2 * SECOND)
    other = held(scene, 1)
    row = Request.objects.select_related("team", "flavor__cluster").get(pk=asked.pk)
    wanted = renewing.wanted(
        row, until=NOW + 4 * DAY, reason="It is not done.", now=NOW + HOUR
    )
    again = submit(wanted, by=scene.ada, now=NOW + HOUR)
    renewed = Allocation.objects.get(hold=again.hold_id)
    assert state(renewed, at=NOW + HOUR) is State.HELD
    assert state(other, at=NOW + HOUR) is State.SETTING_UP
