"""The sample world holds together."""

import json
from collections import Counter
from pathlib import Path

from sandbox import world
from sandbox.azure import sizes
from sandbox.entra.directory import Directory
from sandbox.world import group_id, person_id


def test_every_reference_leads_somewhere() -> None:
    sample = world.sample()
    people = {person.oid for person in sample.people}
    groups = {group.oid for group in sample.groups}
    assert len(people) == len(sample.people)
    assert {person.manager for person in sample.people if person.manager} <= people
    assert {group for person in sample.people for group in person.groups} <= groups
    assert {role for person in sample.people for role in person.roles} == set(
        sample.app_roles
    )


def test_the_directory_is_as_described() -> None:
    directory = Directory(world.sample())
    names = {oid: person.name.split()[0] for oid, person in directory.people.items()}
    chain = [
        names[person.oid]
        for person in directory.managers_of(directory.people[person_id(1)])
    ]
    assert chain == ["Chloe", "Priya", "Elena"]
    assert [names[person.oid] for person in directory.people_of(group_id(4))] == [
        "Priya",
        "Marcus",
    ]
    assert [names[person.oid] for person in directory.people_of(group_id(7))] == [
        "Ada",
        "Ben",
    ]
    assert not directory.enabled[person_id(10)]
    assert len(directory.groups_of(person_id(9))) > 200


def test_clusters_have_the_gpus_of_the_demo_and_a_pool_that_grows_from_none() -> None:
    found = {
        (cluster.name, group.accelerator): (
            group.nodes * group.gpus,
            group.most * group.gpus,
        )
        for cluster in world.sample().clusters
        for group in cluster.node_groups
        if group.gpus
    }
    assert found == {
        ("training-eastus", "nvidia-a100"): (24, 0),
        ("training-eastus", "nvidia-h100"): (16, 0),
        ("training-eastus", "nvidia-a100-spot"): (0, 16),
        ("dev-eastus", "nvidia-t4"): (16, 0),
        ("dev-eastus", "nvidia-a10"): (8, 0),
        ("dev-eastus", "nvidia-h100-nvl"): (0, 4),
    }


def test_a_circle_of_managers_ends() -> None:
    first = world.Person("a", "A", "a@x", "", manager="b")
    second = world.Person("b", "B", "b@x", "", manager="a")
    directory = Directory(world.World((first, second), (), ()))
    assert [person.oid for person in directory.managers_of(first)] == ["b"]


def test_a_circle_of_groups_ends() -> None:
    person = world.Person("p", "P", "p@x", "", groups=("a",))
    groups = (
        world.Group("a", "A", groups=("b",)),
        world.Group("b", "B", groups=("a",)),
    )
    directory = Directory(world.World((person,), groups, ()))
    assert directory.groups_of("p") == ["a", "b"]
    assert directory.people_of("b") == [person]


def test_every_pool_is_of_a_size_that_azure_has_in_its_region() -> None:
    for cluster in world.sample().clusters:
        for group in cluster.node_groups:
            size = sizes.find(group.instance_type)
            assert size is not None, group.name
            assert cluster.region in size.zones


def test_the_subscription_has_room_for_its_clusters_and_not_for_everything() -> None:
    azure = world.sample().azure
    assert azure is not None
    limits = {one.name: one.limit for one in azure.limits if one.region == "eastus"}
    used: Counter[str] = Counter()
    for group in (
        group for cluster in world.sample().clusters for group in cluster.node_groups
    ):
        size = sizes.find(group.instance_type)
        assert size is not None
        used[size.family] += size.vcpus * group.nodes
    left = {name: limits[name] - count for name, count in used.items()}
    assert min(left.values()) == 0 == left[sizes.H100_ND]
    assert left[sizes.A100_ND] == 96
    assert sum(used.values()) < limits["cores"]


def test_a_world_from_a_file_may_have_a_subscription_or_none(tmp_path: Path) -> None:
    path = tmp_path / "world.json"
    path.write_text(json.dumps({"people": [], "groups": [], "clusters": []}))
    assert world.load(path).azure is None
    limit = {"region": "westus", "name": "cores", "limit": 10}
    path.write_text(
        json.dumps(
            {"people": [], "groups": [], "clusters": [], "azure": {"limits": [limit]}}
        )
    )
    azure = world.load(path).azure
    assert azure is not None
    assert azure.limits[0].limit == 10
    assert azure.role_actions
