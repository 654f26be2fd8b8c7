"""What a profile needs before people can choose it."""

from typing import Any

import pytest

from notebooks.profiles.document import Document
from notebooks.profiles.publishing import Capacity, Fleet, problems_of
from tests.notebooks.documents import a100, cpu

FLEET = Fleet(
    teams={"vision", "nlp"},
    clusters={"training-eastus", "inference"},
    flavors={
        "a100": [Capacity("training-eastus", "nvidia.com/gpu", 8)],
        "mig": [Capacity("inference", "nvidia.com/mig-1g.10gb", 7)],
    },
    images=("registry.example.com/",),
)


def places(document: Document) -> set[str]:
    """The places that keep a document from being published."""
    return {place for place, _ in problems_of(document, FLEET)}


def test_a_whole_profile_lacks_nothing() -> None:
    assert problems_of(a100(), FLEET) == []
    assert problems_of(cpu(), FLEET) == []
    assert (
        problems_of(a100(flavor="mig", resource="nvidia.com/mig-1g.10gb"), FLEET) == []
    )


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"teams": ["robotics"]}, "teams.0"),
        ({"clusters": ["gone"]}, "clusters.0"),
        ({"clusters": ["inference"]}, "flavor"),
        ({"flavor": ""}, "flavor"),
        ({"flavor": "h100"}, "flavor"),
        ({"flavor": "mig"}, "resource"),
        ({"gpus": 9}, "gpus"),
        ({"image": "docker.io/miner:1"}, "image"),
        ({"overrides": {"cpu_guarantee": 1}}, "overrides.cpu_guarantee"),
        (
            {"overrides": {"extra_resource_limits": {}}},
            "overrides.extra_resource_limits",
        ),
        ({"overrides": {"namespace": "kube-system"}}, "overrides.namespace"),
        ({"overrides": {"volumes": {}}}, "overrides.volumes"),
        (
            {"overrides": {"extra_labels": {"kueue.x-k8s.io/queue-name": "other"}}},
            "overrides.extra_labels.kueue.x-k8s.io/queue-name",
        ),
        (
            {"overrides": {"extra_labels": {"quartermaster.io/team": "x"}}},
            "overrides.extra_labels.quartermaster.io/team",
        ),
    ],
)
def test_what_it_lacks_is_named_at_its_place(
    changes: dict[str, Any], place: str
) -> None:
    assert place in places(a100(**changes))


def test_no_container_beside_asks_for_gpus_of_its_own() -> None:
    container = {
        "name": "more",
        "resources": {"limits": {"nvidia.com/gpu": "7", "cpu": "1"}},
    }
    assert places(a100(overrides={"extra_containers": [container]})) == {
        "overrides.extra_containers.0.resources.limits.nvidia.com/gpu"
    }
    assert (
        places(a100(overrides={"node_selector": {"nvidia.com/gpu.product": "A100"}}))
        == set()
    )


@pytest.mark.parametrize("name", ["image", "cpus", "memory"])
def test_what_a_server_gets_is_said(name: str) -> None:
    without = {"image": "", "cpus": None, "memory": None}[name]
    assert places(cpu(**{name: without})) == {name}


def test_a_profile_without_gpus_has_no_flavor() -> None:
    assert places(cpu(flavor="a100")) == {"flavor"}


def test_volumes_of_kubespawner_alone_are_passed_on() -> None:
    assert (
        places(a100(volumes=[], overrides={"volumes": {}, "volume_mounts": {}}))
        == set()
    )


def test_a_free_choice_says_what_may_be_written_to_its_end() -> None:
    def free(**changes: str) -> set[str]:
        usual = {"title": "F", "image": "{value}", "pattern": "^registry.+$"}
        return places(a100(options={"image": {"title": "I", "free": usual | changes}}))

    assert free() == set()
    assert free(pattern="") == {"options.image.free.pattern"}
    assert free(pattern="^registry") == {"options.image.free.pattern"}
    assert free(image="docker.io/{value}") == {"options.image.free.image"}
    assert free(image="registry.example.com/{value}") == set()
