"""A budget that comes close to a limit is told of, to the people of the team and to the audit log, once."""

from decimal import Decimal
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

from allocations import tasks
from allocations.budgets.actions import set_budget, tell_close
from allocations.budgets.months import close_sentence
from allocations.models import Budget
from approvals.states import State
from audit.models import Event
from notices.kinds import NoticeKind
from notices.models import Notice
from portal.pages.sentences import sentence
from tests.scene import DAY, NOW, Scene
from tests.subscribed import channel_of

NOVEMBER = NOW.date().replace(day=1)


def budget(scene: Scene, **fields: Any) -> Budget:
    """A month's budget; an ask for two GPUs for three days takes $144 and 144 GPU-hours of it."""
    return Budget.objects.create(
        team=scene.team, **({"month": NOVEMBER, "limit_usd": Decimal(1000)} | fields)
    )


def events() -> list[Event]:
    return list(Event.objects.filter(kind="budget.soft_reached"))


def test_crossing_the_stage_is_told_in_the_same_transaction(scene: Scene) -> None:
    budget(scene, limit_usd=Decimal(180))
    channel = channel_of(NoticeKind.BUDGET_SOFT)
    scene.ask(2, days=3)
    (event,) = events()
    assert (event.team_id, event.actor_name) == (scene.team.pk, "Quartermaster")
    assert event.details == {
        "month": "November 2026",
        "percent": 80,
        "part": "budget",
        "held_usd": "144.00",
        "limit_usd": "180.00",
        "held_gpu_hours": "144.00",
        "gpu_hours_limit": "none",
        "soft_percent": "80",
    }
    assert sentence(event)[0] == "80 % of the budget of November 2026 set aside"
    notice, in_channel = Notice.objects.filter(kind="budget_soft").order_by("id")
    assert (in_channel.channel, in_channel.message) == (channel, notice.message)
    assert (notice.person, notice.link) == (scene.ada, "/teams/vision/budget")
    assert (
        notice.message["title"]
        == "Vision: 80 % of the budget of November 2026 is set aside"
    )
    assert notice.message["sentence"] == (
        "From 80 % of the money on, people decide what goes on top, unless the policy says otherwise. "
        "What is given back is free again."
    )
    assert notice.message["facts"] == [["Set aside", "$144 of $180"], ["Left", "$36"]]
    assert Budget.objects.get(held_usd__gt=0).soft_told_at == NOW


def test_gpu_hours_alone_make_it_close_too(scene: Scene) -> None:
    row = budget(scene, gpu_hours_limit=Decimal(150))
    scene.ask(2, days=3)
    (event,) = events()
    assert (event.details["percent"], event.details["gpu_hours_limit"]) == (
        96,
        "150.00",
    )
    assert sentence(event)[0] == "96 % of the GPU-hours of November 2026 set aside"
    message = Notice.objects.get(kind="budget_soft").message
    assert (
        message["title"]
        == "Vision: 96 % of the GPU-hours of November 2026 are set aside"
    )
    # The policy looks at the money alone: what fits is still granted without people.
    assert message["sentence"] == (
        "What takes more GPU-hours than are left waits until a platform lead raises them. "
        "What is given back is free again."
    )
    assert close_sentence(row) == ""  # as it was read before
    row.refresh_from_db()
    assert close_sentence(row).startswith(
        "96 % of the GPU-hours of November are set aside. What takes"
    )
    assert scene.ask(1, days=0.2).state == State.APPROVED
    assert ["GPU-hours left", "6 GPU-hours"] in Notice.objects.get(
        kind="budget_soft"
    ).message["facts"]


def test_below_the_stage_nobody_is_told(scene: Scene) -> None:
    budget(scene, limit_usd=Decimal("180.01"))
    scene.ask(2, days=3)
    assert events() == []


def test_it_is_told_once_however_often_it_is_crossed(scene: Scene) -> None:
    row = budget(scene, limit_usd=Decimal(180))
    scene.ask(2, days=3)

    for _ in range(2):
        assert tell_close(Budget.objects.all(), now=NOW + DAY) == 0
    set_budget(scene.team, month=NOVEMBER, by=scene.priya, limit_usd=Decimal(5000))
    set_budget(scene.team, month=NOVEMBER, by=scene.priya, limit_usd=Decimal(150))
    assert tell_close(Budget.objects.filter(pk=row.pk), now=NOW + DAY) == 0
    assert len(events()) == 1


def test_the_sweep_tells_what_the_transaction_did_not(scene: Scene) -> None:
    budget(
        scene,
        limit_usd=Decimal(100),
        held_usd=Decimal(90),
        month=NOVEMBER.replace(year=2099),
    )
    tasks.tell_close()
    tasks.tell_close()
    assert [event.details["month"] for event in events()] == ["November 2099"]


def test_a_month_that_is_over_is_not_told_of_any_more(scene: Scene) -> None:
    budget(scene, limit_usd=Decimal(100), held_usd=Decimal(90))
    assert tell_close(Budget.objects.all(), now=NOW + 11 * DAY) == 0


def test_the_sweep_reads_no_month_that_is_over_again_and_again(scene: Scene) -> None:
    def statements() -> int:
        with CaptureQueriesContext(connection) as queries:
            tasks.tell_close()
        return len(queries)

    nothing = statements()
    over = NOVEMBER.replace(year=2020)
    budget(scene, limit_usd=Decimal(100), held_usd=Decimal(90), month=over)
    assert statements() == nothing
