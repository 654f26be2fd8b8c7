"""Logs of the sandbox: what a demo shows, and what readers ask and are refused."""

import asyncio
from typing import Any

import pytest

from sandbox.kubernetes.app import build
from sandbox.kubernetes.controllers_pods import POD
from tests.recordings.calling import call
from tests.sandbox.kubernetes.jobs import World
from tests.sandbox.kubernetes.test_cluster import HEADERS


@pytest.fixture
def world() -> World:
    """A team with a queue of four GPUs, whose followers let time pass."""
    made = World()
    made.queue("vision", 4)

    async def passing(_news: asyncio.Event, seconds: float) -> None:
        made.pass_time(seconds)

    made.cluster.logs.wait = passing
    return made


def read(world: World, pod: str, **query: str) -> Any:
    path = f"/api/v1/namespaces/vision/pods/{pod}/log"
    return call(world.cluster.app, "GET", path, query, HEADERS, b"")


def started(world: World, **more: Any) -> str:
    world.job("vision", "train", **more)
    world.pass_time(0.1)
    [pod] = world.pods("vision")
    return str(pod["metadata"]["name"])


def test_a_training_of_a_demo_writes_on_and_on_and_the_same_at_each_reading(
    world: World,
) -> None:
    pod = started(world)
    assert len(read(world, pod).text.splitlines()) == 1
    world.pass_time(31)
    lines = read(world, pod).text.splitlines()
    assert len(lines) == 11
    assert lines[1].startswith("step 10  loss ")
    world.pass_time(30)
    assert read(world, pod).text.splitlines()[:11] == lines
    assert "checkpoint of step 200 saved" in read(world, pod, tailLines="2").text


def test_a_follower_gets_every_line_once_until_the_container_ends(world: World) -> None:
    pod = started(world, annotations={"test/log": "a\nb\nc\nd", "test/run-for": "10"})
    assert read(world, pod, follow="true").text == "a\nb\nc\nd\n"
    assert world.phases("vision") == ["Succeeded"]


def test_a_follower_is_let_go_when_the_pod_is_deleted(world: World) -> None:
    pod = started(world)

    async def deletes(_news: asyncio.Event, _seconds: float) -> None:
        entry = world.cluster.store.entry(POD, "vision", pod)
        assert entry is not None
        world.cluster.deletes.remove(POD, entry)
        world.cluster.controllers.settle()

    world.cluster.logs.wait = deletes
    assert len(read(world, pod, follow="true").text.splitlines()) == 1


def test_a_log_stays_as_it_was_when_its_pod_ended(world: World) -> None:
    pod = started(world, seconds=3)
    world.pass_time(400)
    assert (
        read(world, pod).text
        == "step 0 loss 2.000\nstep 1 loss 1.000\nstep 2 loss 0.667\nstep 3 loss 0.500\n"
    )


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ({"tailLines": "two"}, 400, 'parsing "two": invalid syntax'),
        (
            {"limitBytes": "0"},
            422,
            "limitBytes: Invalid value: 0: must be greater than 0",
        ),
        (
            {"sinceSeconds": "0"},
            422,
            "sinceSeconds: Invalid value: 0: must be greater than 0",
        ),
        (
            {"sinceTime": "2026-13-01T00:00:00Z"},
            400,
            'parsing time "2026-13-01T00:00:00Z"',
        ),
    ],
)
def test_options_that_mean_nothing_are_refused(
    world: World, query: dict[str, str], status: int, said: str
) -> None:
    answer = read(world, started(world), **query)
    assert answer.status == status
    assert said in answer.json()["message"]


def test_a_log_is_only_read(world: World) -> None:
    pod = started(world)
    path = f"/api/v1/namespaces/vision/pods/{pod}/log"
    assert call(build(world.cluster), "POST", path, {}, HEADERS, b"{}").status == 405


def test_lines_since_a_moment_are_those_from_then_on(world: World) -> None:
    pod = started(world, seconds=60)
    world.pass_time(10)
    lines = read(world, pod, sinceSeconds="3").text.splitlines()
    assert lines == ["step 8 loss 0.222", "step 9 loss 0.200", "step 10 loss 0.182"]
    stamps = [
        line.partition(" ")[0]
        for line in read(world, pod, timestamps="true").text.splitlines()
    ]
    since = read(world, pod, sinceTime=stamps[8]).text.splitlines()
    assert since == ["step 8 loss 0.222", "step 9 loss 0.200", "step 10 loss 0.182"]


def test_each_reading_of_a_log_is_counted(world: World) -> None:
    pod = started(world)
    before = world.cluster.requests["logs"]
    read(world, pod)
    read(world, pod, tailLines="1")
    assert world.cluster.requests["logs"] == before + 2
