"""Volcano's queues in the sandbox: how they are closed and opened, and what closes with them."""

import pytest

from tests.sandbox.kubernetes.volcanoes import SCHEDULING, TEAM, VolcanoWorld

QUEUES = f"/apis/{SCHEDULING}/queues"


@pytest.fixture
def world() -> VolcanoWorld:
    """A team with a queue of 16 GPUs."""
    world = VolcanoWorld()
    world.queue()
    return world


def state(world: VolcanoWorld, name: str = TEAM) -> str:
    return str(world.get_queue(name)["status"]["state"])


def test_a_new_queue_is_open_and_under_the_root(world: VolcanoWorld) -> None:
    assert (state(world), world.get_queue()["spec"]["parent"]) == ("Open", "root")


def test_a_queue_says_nothing_of_how_many_groups_are_in_it(world: VolcanoWorld) -> None:
    world.job("train")
    assert set(world.get_queue()["status"]) == {"allocated", "state"}


def test_a_command_closes_an_empty_queue_and_opens_it_again(
    world: VolcanoWorld,
) -> None:
    world.command("Queue", TEAM, "CloseQueue")
    assert state(world) == "Closed"
    told = world.events("Queue", "default")
    assert ("Normal", "CloseQueue", "Close queue succeed") in told
    assert world.send("GET", "/apis/bus.volcano.sh/v1alpha1/commands")["items"] == []

    world.command("Queue", TEAM, "OpenQueue")

    assert state(world) == "Open"
    assert ("Normal", "OpenQueue", "Open queue succeed") in world.events(
        "Queue", "default"
    )


def test_a_queue_in_use_closes_once_its_groups_are_gone(world: VolcanoWorld) -> None:
    world.job("train", seconds=30)
    world.pass_time()
    world.command("Queue", TEAM, "CloseQueue")
    assert (state(world), world.phase("train")) == ("Closing", "Running")

    world.pass_time(31)

    assert (state(world), world.phase("train")) == ("Closed", "Completed")


def test_the_state_in_the_status_closes_as_well(world: VolcanoWorld) -> None:
    world.job("train")
    world.send("PATCH", f"{QUEUES}/{TEAM}/status", {"status": {"state": "Closed"}})
    assert state(world) == "Closing"
    world.send("DELETE", f"{world.jobs()}/train")
    assert state(world) == "Closed"


def test_a_queue_that_is_closing_may_not_be_changed(world: VolcanoWorld) -> None:
    world.job("train")
    world.command("Queue", TEAM, "CloseQueue")
    said = world.refused("PATCH", f"{QUEUES}/{TEAM}", {"spec": {"weight": 2}})[1]
    assert (
        'requestBody.spec.state: Invalid value: "Closing": queue state must be in [Open Closed]'
        in said
    )


def test_the_root_stays_open(world: VolcanoWorld) -> None:
    world.command("Queue", "root", "CloseQueue")
    assert state(world, "root") == "Open"


def test_a_command_for_what_is_not_there_is_forgotten(world: VolcanoWorld) -> None:
    world.command("Queue", "nobody", "CloseQueue")
    world.command("Job", "nobody", "AbortJob", TEAM)
    assert world.send("GET", "/apis/bus.volcano.sh/v1alpha1/commands")["items"] == []


def test_what_is_under_a_queue_closes_and_opens_with_it(world: VolcanoWorld) -> None:
    world.send("POST", QUEUES, world.queue_body("below", parent=TEAM))
    world.command("Queue", TEAM, "CloseQueue")
    assert (state(world), state(world, "below")) == ("Closed", "Closed")
    marks = world.get_queue("below")["metadata"]["annotations"]
    assert marks == {"volcano.sh/closed-by-parent": "true"}

    world.command("Queue", TEAM, "OpenQueue")

    assert (state(world), state(world, "below")) == ("Open", "Open")


def test_a_queue_that_was_closed_by_itself_stays_so(world: VolcanoWorld) -> None:
    world.send("POST", QUEUES, world.queue_body("below", parent=TEAM))
    world.command("Queue", "below", "CloseQueue")
    world.command("Queue", TEAM, "CloseQueue")
    world.command("Queue", TEAM, "OpenQueue")
    assert (state(world), state(world, "below")) == ("Open", "Closed")
