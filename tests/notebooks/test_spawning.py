"""Profiles as a hub starts them in a namespace: who may choose which, and what the pod gets beside the profile."""

import re
from typing import Any

from notebooks.profiles.document import Document
from notebooks.profiles.spawning import Place, profile_list, refused_here
from tests.notebooks.documents import TAINT, a100, cpu, place


def override(document: Document, where: Place) -> dict[str, Any]:
    """What the only profile of a list overrides."""
    [one] = profile_list([document], where)
    found: dict[str, Any] = one["kubespawner_override"]
    return found


def test_a_server_starts_in_the_teams_namespace_and_queue_and_is_charged_to_it() -> (
    None
):
    found = override(a100(), place())
    labels = found["extra_labels"]
    assert found["namespace"] == "qm-vision-main-1a2b3c"
    assert labels["kueue.x-k8s.io/queue-name"] == "default"
    assert (labels["team"], labels["project"], labels["cost-center"]) == (
        "vision",
        "main",
        "CC-1",
    )
    assert labels["quartermaster.io/profile"] == "a100-1"
    assert labels["course"] == "spring"


def test_a_server_with_gpus_goes_to_the_nodes_of_its_flavor() -> None:
    found = override(
        a100(overrides={"node_selector": {"zone": "1"}, "tolerations": [{"key": "x"}]}),
        place(),
    )
    assert found["node_selector"] == {"zone": "1", "accelerator": "nvidia-a100"}
    assert found["tolerations"] == [{"key": "x"}, {**TAINT, "operator": "Equal"}]
    assert "node_selector" not in override(cpu(), place())


def test_tolerations_that_are_a_mapping_are_kept_beside_those_of_the_flavor() -> None:
    found = override(a100(overrides={"tolerations": {"b": {"key": "x"}}}), place())
    assert found["tolerations"] == [{"key": "x"}, {**TAINT, "operator": "Equal"}]


def test_what_only_the_portal_reads_does_not_go_to_the_hub() -> None:
    [one] = profile_list([a100()], place())
    assert "x-quartermaster" not in one


def test_who_may_choose_a_profile_is_said_in_words() -> None:
    assert refused_here(a100(), place()) == ""
    assert (
        refused_here(a100(), place(team="robotics"))
        == "This profile is not for your team."
    )
    assert refused_here(a100(), place(environment="production")) == (
        "This profile is for dev and test; this namespace is production."
    )
    assert refused_here(a100(clusters=["inference"]), place()) == (
        "This profile is not offered on Training, East US."
    )
    assert refused_here(a100(environments=["test"]), place()).startswith(
        "This profile is for test;"
    )
    assert profile_list([a100()], place(team="robotics")) == []


def test_choices_with_more_gpus_than_there_can_be_are_left_out() -> None:
    [one] = profile_list([a100()], place(gpus=1))
    assert [*one["profile_options"]["size"]["choices"]] == ["one"]
    assert profile_list([a100()], place(gpus=0)) == []
    assert profile_list([a100(options={})], place(gpus=1))
    assert profile_list([a100(options={}, gpus=2)], place(gpus=1)) == []


def test_a_larger_profile_counts_as_its_choices_have_it() -> None:
    # Each choice of a size says its GPUs, so the profile's own number is never what a server gets.
    assert profile_list([a100(gpus=8)], place(gpus=1))
    only_images = {
        "image": {
            "title": "I",
            "choices": {"a": {"title": "A", "image": "registry.example.com/a:1"}},
        }
    }
    assert profile_list([a100(gpus=8, options=only_images)], place(gpus=1)) == []


def test_the_list_is_in_order_and_without_gpus_for_who_holds_none() -> None:
    both = [cpu(order=20), a100(order=10)]
    assert [one["slug"] for one in profile_list(both, place())] == ["a100-1", "cpu"]
    assert [one["slug"] for one in profile_list(both, place(gpus=0))] == ["cpu"]


def test_a_typed_image_is_one_of_those_that_are_allowed() -> None:
    images = ("registry.example.com/notebook/",)
    options = {
        "image": {
            "title": "I",
            "free": {"title": "F", "image": "{value}", "pattern": "^.+$"},
        }
    }
    [one] = profile_list([a100(options=options)], place(images=images))
    pattern = one["profile_options"]["image"]["unlisted_choice"]["validation_regex"]
    assert re.match(pattern, "registry.example.com/notebook/x:1")
    assert not re.match(pattern, "docker.io/miner:1")


def test_a_typed_tag_is_not_held_to_the_beginnings_of_images() -> None:
    free = {
        "title": "F",
        "image": "registry.example.com/notebook/{value}",
        "pattern": "^[a-z]+:[0-9]+$",
    }
    [one] = profile_list(
        [a100(options={"image": {"title": "I", "free": free}})],
        place(images=("registry.example.com/",)),
    )
    assert re.match(
        one["profile_options"]["image"]["unlisted_choice"]["validation_regex"], "jax:1"
    )
