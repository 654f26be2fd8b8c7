"""From what a team holds to what its tenancy should be."""

from allocations.desired_state import Kind, Place, desired
from provisioning.desired.naming import namespace_of
from provisioning.desired.spec import FlavorQuota, TenancySpec

SPACE = namespace_of(team="vision", project="detection")
GROUP = "00000000-0000-4000-9000-000000000001"


def place(*, borrow_percent: int = 0) -> Place:
    return Place(
        tenancy=7,
        team="vision",
        project="detection",
        cost_centre="CC-1",
        environment="dev",
        namespace=SPACE,
        entra_group=GROUP,
        cohort="quartermaster",
        storage_class="",
        borrow_percent=borrow_percent,
    )


A100 = Kind(name="a100", cpu_per_gpu=8, memory_gib_per_gpu=64)
H100 = Kind(name="h100", cpu_per_gpu=16, memory_gib_per_gpu=128)


def test_it_carries_over_the_place_and_sorts_the_flavors() -> None:
    assert desired(place(), kinds=[H100, A100], held={"a100": 3}) == TenancySpec(
        tenancy=7,
        team="vision",
        project="detection",
        cost_centre="CC-1",
        environment="dev",
        namespace=SPACE,
        entra_group=GROUP,
        cohort="quartermaster",
        storage_class="",
        flavors=(
            FlavorQuota(
                name="a100", gpus=3, borrow=0, cpu_per_gpu=8, memory_gib_per_gpu=64
            ),
            FlavorQuota(
                name="h100", gpus=0, borrow=0, cpu_per_gpu=16, memory_gib_per_gpu=128
            ),
        ),
    )


def test_what_may_be_borrowed_is_a_share_of_what_is_held_rounded_down() -> None:
    spec = desired(
        place(borrow_percent=50), kinds=[A100, H100], held={"a100": 5, "h100": 1}
    )
    assert [(flavor.gpus, flavor.borrow) for flavor in spec.flavors] == [(5, 2), (1, 0)]


def test_the_order_of_the_flavors_makes_no_other_spec() -> None:
    one, other = ([A100, H100], [H100, A100])
    assert (
        desired(place(), kinds=one, held={}).to_json()
        == desired(place(), kinds=other, held={}).to_json()
    )


def test_a_team_that_holds_nothing_keeps_its_place() -> None:
    assert desired(place(), kinds=[A100], held={}).gpus() == 0
