"""Which Volcano there is, how its scheduler is set up, and whether teams are kept to their own queues."""

import pytest

from connectors.errors import PermanentError
from fleet.models import Cluster
from fleet.presenting import health as badge
from provisioning.clusters import health, volcano

GOOD = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: capacity
"""


@pytest.mark.parametrize(
    "version", ["v1.9.0", "v1.15.1", "v2.0.0", "", "1.9 or newer", "latest"]
)
def test_what_is_new_enough_or_unknown_passes(version: str) -> None:
    volcano.check(version)


@pytest.mark.parametrize("version", ["v1.8.2", "v0.4.2"])
def test_what_is_too_old_is_refused_with_what_is_needed(version: str) -> None:
    with pytest.raises(
        PermanentError, match=f"Volcano {version} is too old: .* 1.9 or newer"
    ) as caught:
        volcano.check(version)
    assert caught.value.code == "volcano_too_old"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(GOOD, [], id="as the portal needs it"),
        pytest.param(
            GOOD.replace("capacity", "proportion"),
            ["no tier names the plugin capacity", "a tier names the plugin proportion"],
            id="as Volcano comes",
        ),
        pytest.param(
            GOOD.replace("gang", "drf"),
            ["no tier names the plugin gang"],
            id="no gangs",
        ),
        pytest.param(
            GOOD.replace("enqueue, ", ""),
            ["actions does not name enqueue"],
            id="no enqueue",
        ),
        pytest.param(
            "actions: enqueue, allocate",
            ["plugin gang", "plugin capacity"],
            id="no tiers",
        ),
        pytest.param("a: [", ["it cannot be read"], id="no YAML"),
        pytest.param("[1]", ["it cannot be read"], id="no mapping"),
    ],
)
def test_what_its_settings_lack_is_said(text: str, words: list[str]) -> None:
    lacking = volcano.settings_lacking(text)
    assert len(lacking) == len(words)
    assert all(each in found for each, found in zip(words, lacking, strict=True))


def test_a_scheduler_that_is_not_available_is_bad_and_an_unseen_one_unknown() -> None:
    def states(status: dict[str, int] | None) -> list[str]:
        deployment = None if status is None else {"status": status}
        return [one["state"] for one in health.volcano_scheduler(deployment)]

    assert (states({"availableReplicas": 1}), states({}), states(None)) == (
        ["good"],
        ["bad"],
        ["waiting"],
    )


def test_settings_that_share_otherwise_are_bad() -> None:
    assert health.volcano_settings([])["state"] == "good"
    found = health.volcano_settings(["no tier names the plugin capacity"])
    assert (found["state"], "no tier names the plugin capacity" in found["words"]) == (
        "bad",
        True,
    )


@pytest.mark.parametrize(
    ("missing", "state"),
    [([], "good"), (None, "waiting"), (["ValidatingAdmissionPolicy x"], "bad")],
)
def test_a_missing_guard_is_said(missing: list[str] | None, state: str) -> None:
    assert health.volcano_guards(missing)["state"] == state


@pytest.mark.parametrize(
    "part",
    [
        health.volcano_scheduler({"status": {}})[0],
        health.volcano_settings(["x"]),
        health.volcano_guards(["x"]),
        health.names_outside(enforced=False),
    ],
    ids=lambda part: part["part"],
)
def test_the_badge_names_what_is_broken(part: dict[str, str]) -> None:
    tone, word = badge(Cluster(reachable=True, parts=[part]))
    assert tone == "bad"
    assert word
