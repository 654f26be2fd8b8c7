"""GPUs of a Volcano queue that are in use by decree: a job, its group and its pod, which nothing disturbs."""

import pytest

from tests.sandbox.kubernetes.volcanoes import GPU, TEAM, VolcanoWorld


@pytest.fixture
def world() -> VolcanoWorld:
    """A team with a queue of 16 GPUs."""
    world = VolcanoWorld()
    world.queue()
    return world


def occupy(world: VolcanoWorld, gpus: int, namespace: str = TEAM) -> None:
    body = {"namespace": namespace, "flavor": "a100", "gpus": gpus}
    world.send("POST", "/sandbox/workloads", body)


def test_so_many_are_in_use_from_now_on(world: VolcanoWorld) -> None:
    occupy(world, 12)
    world.pass_time(1000)
    assert world.get_queue()["status"]["allocated"][GPU] == "12"
    assert (world.phase("sandbox-a100"), world.groups()[0]["status"]["phase"]) == (
        "Running",
        "Running",
    )
    assert world.get_job("sandbox-a100")["status"]["running"] == 1

    world.job("train", workers=1, gpus=8)

    assert world.group("train")["status"]["phase"] == "Pending"


def test_it_is_replaced_and_ended(world: VolcanoWorld) -> None:
    occupy(world, 12)
    occupy(world, 3)
    assert world.get_queue()["status"]["allocated"][GPU] == "3"
    assert len(world.pods()) == 1

    occupy(world, 0)

    assert (world.pods(), world.groups()) == ([], [])
    assert GPU not in world.get_queue()["status"]["allocated"]


def test_it_may_be_stopped_as_any_job(world: VolcanoWorld) -> None:
    occupy(world, 12)
    world.send("DELETE", f"{world.jobs()}/sandbox-a100")
    assert (world.pods(), world.groups()) == ([], [])


def test_a_namespace_without_a_queue_uses_none(world: VolcanoWorld) -> None:
    world.namespace("free")
    body = {"namespace": "free", "flavor": "a100", "gpus": 1}
    assert world.refused("POST", "/sandbox/workloads", body) == (
        400,
        "free has no Queue",
    )
