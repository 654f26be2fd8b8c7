"""A run on spot beside the same run on demand, by the numbers of its plan, on its page and by API."""

from dataclasses import replace
from decimal import Decimal

import pytest

from fleet.models import Flavor
from provisioning.desired.first_job import Kind
from tests import factories
from tests.calling import Caller
from tests.workloads.conftest import Watched
from tests.workloads.test_runs import ASKED
from tests.workloads.test_runs_api import body
from tests.workloads.test_runs_page import address, client, filled
from workloads.runs.planning.plan import Plan
from workloads.runs.planning.pools import Pool
from workloads.runs.planning.spot import spot_of

POOL = Pool(
    kind=Kind("a100", "nvidia.com/gpu", {}, []),
    product="A100",
    gpus=8,
    borrow=0,
    per_node=8,
    usd_per_hour=Decimal(4),
    other_usd=Decimal(1),
    interruption_hours=10,
)
# Eight GPUs for ten hours: $320 on demand, $80 on spot were it never taken back.
PLAN = Plan(
    name="it",
    manifests=(),
    problems=(),
    gpus=8,
    pods=1,
    seconds=36_000,
    pool=POOL,
    checkpoint_minutes=60,
)


def test_an_interruption_loses_half_an_interval_and_the_restart() -> None:
    spot = spot_of(PLAN)
    assert spot is not None
    assert spot.found is not None
    # 30 and 10 minutes of 8 x $1, every ten hours: of each hour 14/15 go forward.
    assert round(spot.found.lost, 2) == Decimal("5.33")
    assert round(spot.found.spot or 0, 2) == Decimal("85.71")
    assert spot.words == (
        "Spot costs about $86 instead of $320. A node is taken back every 10 hours on average, about 1.1 times in "
        "this run; each time loses $5.33, half of the 60 minutes between checkpoints. It pays while checkpoints are "
        "at most 14 hours apart."
    )
    assert not spot.is_chosen


def test_of_a_gang_one_node_interrupts_all_and_of_a_sweep_itself_alone() -> None:
    four = replace(PLAN, gpus=32, pods=4)
    gang, sweep = spot_of(replace(four, is_gang=True)), spot_of(four)
    assert gang is not None
    assert sweep is not None
    assert gang.found is not None
    assert sweep.found is not None
    assert round(gang.found.lost, 2) == round(4 * sweep.found.lost, 2)
    assert round(sweep.found.spot or 0, 2) == round(4 * Decimal(80) * 15 / 14, 2)
    # Every 2.5 hours one of four is taken, and forty minutes of all four are done again.
    assert round(gang.found.spot or 0, 2) == round(4 * Decimal(80) * 15 / 11, 2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"checkpoint_minutes": 0},
            "half of the run on average: as long as nobody says how many minutes lie between",
        ),
        (
            {"checkpoint_minutes": 0, "pods": 8, "gpus": 64, "is_gang": True},
            "would never finish on spot",
        ),
        ({"seconds": None}, "75% less than on demand. Nobody has said how often"),
        (
            {"pool": replace(POOL, interruption_hours=0)},
            "75% less than on demand. Nobody has said how often",
        ),
        (
            {"pool": replace(POOL, other_usd=Decimal("3.9"), interruption_hours=1)},
            "Spot is dearer here",
        ),
        (
            {
                "pool": replace(
                    POOL, is_spot=True, usd_per_hour=Decimal(1), other_usd=Decimal(4)
                )
            },
            "$86 instead",
        ),
    ],
)
def test_it_says_what_matters(change: dict[str, object], said: str) -> None:
    spot = spot_of(replace(PLAN, **change))  # type: ignore[arg-type]
    assert spot is not None
    assert said in spot.words


@pytest.mark.parametrize(
    ("change", "is_cheaper"),
    [
        pytest.param({}, True, id="it saves"),
        pytest.param({"other_usd": Decimal("3.9")}, False, id="lost work eats it up"),
        pytest.param(
            {"other_usd": Decimal(4), "interruption_hours": 0}, False, id="one price"
        ),
        pytest.param({"interruption_hours": 0}, True, id="the price alone is known"),
    ],
)
def test_it_says_whether_spot_is_cheaper(
    change: dict[str, object], is_cheaper: bool
) -> None:
    pool = replace(POOL, **change)  # type: ignore[arg-type]
    spot = spot_of(replace(PLAN, pool=pool))
    assert spot is not None
    assert spot.is_cheaper is is_cheaper


def test_a_run_that_would_never_finish_on_spot_is_not_cheaper_there() -> None:
    gang = replace(PLAN, checkpoint_minutes=0, pods=8, gpus=64, is_gang=True)
    spot = spot_of(gang)
    assert spot is not None
    assert not spot.is_cheaper


def test_the_page_does_not_offer_to_ask_for_spot_that_is_dearer(
    watched: Watched, on_spot: Flavor
) -> None:
    on_spot.price_per_gpu_hour *= Decimal("2.9")
    on_spot.interruption_hours = 1
    on_spot.save()
    browser = client(watched.ada)
    typed = filled(browser.get(address(watched)), minutes="1440", check="1")
    shown = browser.post(address(watched), typed).content.decode()
    assert "Spot is dearer here" in shown or "would never finish" in shown
    assert "on spot</a>" not in shown


def test_where_there_is_one_price_nothing_is_compared() -> None:
    assert spot_of(replace(PLAN, pool=replace(POOL, other_usd=None))) is None
    assert spot_of(replace(PLAN, gpus=0)) is None
    assert spot_of(replace(PLAN, pool=None)) is None


@pytest.fixture
def on_spot(watched: Watched) -> Flavor:
    """The same GPUs on spot, a third of the price, taken back every ten hours."""
    a100 = watched.cluster.flavors.get(name="a100")
    return factories.flavor(
        watched.cluster,
        "a100-spot",
        product=a100.product,
        memory_gb=a100.memory_gb,
        capacity_type="spot",
        price_per_gpu_hour=a100.price_per_gpu_hour / 3,
        interruption_hours=10,
    )


def test_page_and_api_compare_and_the_program_is_told_the_interval(
    watched: Watched, on_spot: Flavor
) -> None:
    browser = client(watched.ada)
    typed = filled(
        browser.get(address(watched)),
        checkpoint_minutes="30",
        minutes="1440",
        check="1",
    )
    shown = browser.post(address(watched), typed).content.decode()
    assert "On spot instead" in shown
    assert "half of the 30 minutes between checkpoints" in shown
    assert "Ask for 2 on spot" in shown
    assert "flavor=training%2Fa100-spot" in shown
    asked = body(
        watched,
        replace(
            ASKED, values={**ASKED.values, "checkpoint_minutes": 30, "minutes": 1440}
        ),
    )
    caller = Caller(watched.ada)
    plan = caller.post("runs/preview/", asked).json()
    assert plan["spot"]["is_chosen"] is False
    assert Decimal(plan["spot"]["spot_usd"]) < Decimal(plan["spot"]["on_demand_usd"])
    [job] = [one for one in plan["manifests"] if one["kind"] == "Job"]
    [container] = job["spec"]["template"]["spec"]["containers"]
    assert {"name": "QM_CHECKPOINT_MINUTES", "value": "30"} in container["env"]
    on_spot.delete()
    assert caller.post("runs/preview/", asked).json()["spot"] is None
