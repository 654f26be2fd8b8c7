"""The contract between what teams hold and what stands on a cluster."""

import json
from typing import Any

import pytest
from hypothesis import given

from fleet.egress import EgressRule
from provisioning.desired.spec import (
    LARGEST_GIB,
    LARGEST_GPUS,
    LARGEST_OF_A_GPU,
    LARGEST_WEIGHT,
    MANY,
    MOST_FLAVORS,
    MOST_VOLUMES,
    ONCE,
    FlavorQuota,
    SpecRefused,
    TenancySpec,
    Volume,
    volumes_from,
)
from tests.provisioning.specs import SAMPLE, sample, specs


@pytest.mark.slow
@given(specs())
def test_a_spec_survives_its_storage(spec: TenancySpec) -> None:
    stored = json.loads(json.dumps(spec.to_json()))
    assert TenancySpec.from_json(stored) == spec
    assert TenancySpec.from_json(stored).to_json() == stored == spec.to_json()


def test_ways_out_survive_the_storage_of_a_spec() -> None:
    spec = sample(egress=(EgressRule(name="mirror", cidrs=("192.0.2.0/24",)),))
    assert TenancySpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec


def test_a_spec_that_was_stored_before_there_were_ways_out_has_none() -> None:
    stored = SAMPLE.to_json()
    del stored["egress"]
    assert TenancySpec.from_json(stored).egress == ()


@pytest.mark.parametrize("kind", ["egress", "services"])
def test_what_is_stored_as_a_way_out_or_a_service_and_is_none_is_refused(
    kind: str,
) -> None:
    with pytest.raises(SpecRefused):
        TenancySpec.from_json(SAMPLE.to_json() | {kind: [{"name": "mirror"}]})


def test_what_was_taken_over_is_kept_beside_the_spec_and_read_with_it() -> None:
    taken = {"ResourceQuota/team-quota": {"spec.hard.pods": "80"}}
    assert "adopted" not in sample(adopted=(("a", "b", "c"),)).to_json()
    assert TenancySpec.from_json(SAMPLE.to_json() | {"adopted": taken}).adopted == (
        ("ResourceQuota/team-quota", "spec.hard.pods", "80"),
    )


@pytest.mark.parametrize(
    ("gpus", "borrow"),
    [(-1, 0), (LARGEST_GPUS + 1, 0), (10**20, 0), (2, -1), (2, 3), (0, 1)],
)
def test_it_refuses_what_is_not_a_quota(gpus: int, borrow: int) -> None:
    with pytest.raises(
        SpecRefused, match=f"{gpus} GPUs with {borrow} to borrow is not a quota"
    ):
        FlavorQuota(name="a100", gpus=gpus, borrow=borrow)


def test_a_stored_spec_that_is_no_quota_is_refused_when_it_is_read() -> None:
    stored = SAMPLE.to_json()
    stored["flavors"][0]["gpus"] = -2
    with pytest.raises(SpecRefused):
        TenancySpec.from_json(stored)


def test_the_largest_quota_is_one() -> None:
    assert (
        FlavorQuota(name="a100", gpus=LARGEST_GPUS, borrow=LARGEST_GPUS).gpus
        == LARGEST_GPUS
    )


def test_gpus_are_added_over_flavors() -> None:
    assert SAMPLE.gpus() == 2


def test_the_room_is_what_is_guaranteed_borrowed_and_still_in_use() -> None:
    assert FlavorQuota(name="a100", gpus=4, borrow=2, over=1).room == 7


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"over": -1}, id="fewer than none in use"),
        pytest.param({"over": LARGEST_GPUS + 1}, id="more in use than any cluster has"),
        pytest.param({"cpu_per_gpu": 0}, id="no CPU"),
        pytest.param({"memory_gib_per_gpu": 0}, id="no memory"),
        pytest.param({"cpu_per_gpu": LARGEST_OF_A_GPU + 1}, id="too many CPUs"),
        pytest.param(
            {"memory_gib_per_gpu": LARGEST_OF_A_GPU + 1}, id="too much memory"
        ),
        pytest.param({"gpus": 2.0}, id="no whole number of GPUs"),
        pytest.param({"gpus": True}, id="yes GPUs"),
        pytest.param({"name": "A100"}, id="capital letters"),
        pytest.param({"name": "quartermaster-cpu"}, id="the portal's own flavor"),
        pytest.param({"name": "a" * 64}, id="a name too long for a label"),
        pytest.param({"resource": "x.io/gpu"}, id="a resource that is no GPU"),
    ],
)
def test_what_no_flavor_may_have_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(SpecRefused):
        FlavorQuota(**{"name": "a100", "gpus": 2, **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {"gpus": 0},
        {"gpus": 2, "borrow": 2},
        {"over": LARGEST_GPUS},
        {"cpu_per_gpu": 1, "memory_gib_per_gpu": 1},
        {"cpu_per_gpu": LARGEST_OF_A_GPU, "memory_gib_per_gpu": LARGEST_OF_A_GPU},
        {"name": "a" * 63},
        {"resource": "nvidia.com/mig-9g.999gb.me"},
    ],
)
def test_the_least_and_the_most_of_a_flavor_are_taken(fields: dict[str, Any]) -> None:
    flavor = FlavorQuota(**{"name": "a100", "gpus": 2, **fields})
    assert {name: getattr(flavor, name) for name in fields} == fields


@pytest.mark.parametrize(("gib", "access"), [(1, ONCE), (LARGEST_GIB, MANY)])
def test_the_smallest_and_the_largest_volume_are_volumes(gib: int, access: str) -> None:
    assert Volume(name="data", gib=gib, access=access).gib == gib


@pytest.mark.parametrize(
    ("name", "gib", "access"),
    [
        ("data", 0, ONCE),
        ("data", LARGEST_GIB + 1, ONCE),
        ("data", 1, "ReadOnlyMany"),
        ("Data", 1, ONCE),
        ("data", 2.0, ONCE),
        ("data", True, ONCE),
    ],
)
def test_what_is_no_volume_is_refused(name: str, gib: Any, access: str) -> None:
    with pytest.raises(SpecRefused):
        Volume(name=name, gib=gib, access=access)


def test_a_volume_is_asked_for_with_more_than_it_keeps() -> None:
    asked = {"name": "data", "gib": 5, "access": MANY, "reason": "For training."}
    assert Volume.asked(asked) == Volume(name="data", gib=5, access=MANY)


@pytest.mark.parametrize(
    "stored",
    ["", {}, "data", {"name": "data"}, [{"name": "data"}], [{"size": 1}], ["data"]],
    ids=repr,
)
def test_what_is_stored_as_volumes_and_is_none_is_refused(stored: object) -> None:
    with pytest.raises(SpecRefused, match="are not volumes"):
        volumes_from(stored)


def disks(number: int) -> tuple[Volume, ...]:
    return tuple(Volume(name=f"v{at:03}", gib=1, access=ONCE) for at in range(number))


def flavors(number: int) -> tuple[FlavorQuota, ...]:
    return tuple(FlavorQuota(name=f"f{at:03}", gpus=1) for at in range(number))


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"environment": "staging"}, id="an environment of nobody"),
        pytest.param({"stop": "Never"}, id="a stop that Kueue does not know"),
        pytest.param(
            {"highest_priority": "system-node-critical"}, id="a priority of Kubernetes"
        ),
        pytest.param({"access": 1}, id="a number for yes"),
        pytest.param({"dashboards": None}, id="nothing for no"),
        pytest.param({"by_name": "no"}, id="a word for no"),
        pytest.param(
            {"flavors": flavors(MOST_FLAVORS + 1)},
            id="more flavors than a queue may have",
        ),
        pytest.param({"flavors": flavors(2)[::-1]}, id="flavors out of order"),
        pytest.param({"flavors": flavors(1) * 2}, id="a flavor twice"),
        pytest.param(
            {"volumes": disks(MOST_VOLUMES + 1)},
            id="more volumes than a namespace may have",
        ),
        pytest.param({"volumes": disks(2)[::-1]}, id="volumes out of order"),
        pytest.param({"volumes": disks(1) * 2}, id="a volume twice"),
        pytest.param({"namespace": "kube-system"}, id="a namespace of Kubernetes"),
        pytest.param({"team": "Vision"}, id="a team with capital letters"),
        pytest.param({"project": "a b"}, id="a project of two words"),
        pytest.param({"cost_centre": "cc 1"}, id="a cost centre of two words"),
        pytest.param({"entra_group": "everybody"}, id="a group without an id"),
        pytest.param({"cohort": "A/B"}, id="a cohort that is no name"),
        pytest.param({"installation": "A"}, id="a mark with capital letters"),
        pytest.param({"storage_class": "fast disk"}, id="a storage class of two words"),
        pytest.param(
            {"jupyterhub_namespace": "Hub"}, id="a hub in what is no namespace"
        ),
        pytest.param({"tenancy": -1}, id="a negative tenancy"),
        pytest.param({"tenancy": "7"}, id="a tenancy in words"),
        pytest.param({"weight": 0}, id="no share"),
        pytest.param({"weight": LARGEST_WEIGHT + 1}, id="more than the largest share"),
        pytest.param({"base_cpu": -1}, id="negative CPUs"),
        pytest.param({"base_cpu": LARGEST_GPUS + 1}, id="too many CPUs"),
        pytest.param({"base_memory_gib": -1}, id="negative memory"),
        pytest.param({"base_memory_gib": LARGEST_GPUS + 1}, id="too much memory"),
    ],
)
def test_what_must_not_reach_a_cluster_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(SpecRefused):
        sample(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"flavors": flavors(MOST_FLAVORS)},
        {"volumes": disks(MOST_VOLUMES)},
        {"tenancy": 0},
        {"weight": 1},
        {"weight": LARGEST_WEIGHT},
        {"base_cpu": 0, "base_memory_gib": 0},
        {"base_cpu": LARGEST_GPUS, "base_memory_gib": LARGEST_GPUS},
        {"stop": "Hold"},
        {"stop": "HoldAndDrain"},
        {"storage_class": ""},
        {"installation": ""},
        {"installation": "a1"},
    ],
    ids=" ".join,
)
def test_the_least_and_the_most_of_a_tenancy_are_taken(fields: dict[str, Any]) -> None:
    spec = sample(**fields)
    assert {name: getattr(spec, name) for name in fields} == fields


@pytest.mark.parametrize("by_name", [True, False])
def test_ways_out_to_names_are_open_only_where_the_network_enforces_them(
    *, by_name: bool
) -> None:
    to_a_range, to_a_name = (
        EgressRule(name="mirror", cidrs=("192.0.2.0/24",)),
        EgressRule(name="x", names=("x.io",)),
    )
    spec = sample(egress=(to_a_range, to_a_name), by_name=by_name)

    assert spec.egress_by_range == (to_a_range,)
    assert spec.egress_by_name == ((to_a_name,) if by_name else ())


def test_whole_gpus_come_first_and_each_part_of_one_once() -> None:
    small, large = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
    parts = [
        FlavorQuota(name=f"f{at}", gpus=1, resource=of)
        for at, of in enumerate((large, small, small))
    ]

    assert sample(flavors=tuple(parts)).resources == ["nvidia.com/gpu", small, large]
