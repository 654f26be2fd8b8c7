"""The policy page says the numbers that decide, and judges its examples by the same function."""

from datetime import timedelta
from decimal import Decimal

from django.test import Client
from django.utils import timezone

from approvals.policy_desk.limits_page import context, rules
from policy.document import (
    LEADS,
    Override,
    Policy,
    Route,
    StepPlan,
    Thresholds,
    Where,
)
from tests import factories
from tests.pages import parsed
from tests.scene import Scene
from ui.tables import whole_cell


def test_everybody_reads_the_numbers_in_force(client: Client, scene: Scene) -> None:
    client.force_login(scene.mallory)
    said = client.get("/policy/").content.decode()
    for words in (
        "Policy 1",
        "up to 2",
        "up to 14 days",
        "up to $1,500 in all",
        "8 GPUs and more",
        "Over 90 days",
    ):
        assert words in said


def test_no_rule_that_sends_an_ask_to_people_is_left_out(scene: Scene) -> None:
    assert facts(Thresholds()) >= {
        ("Offering", "self-service in the catalogue"),
        ("Booked for the same time", "up to 6 GPUs of a team were automatic"),
        ("Cost centre", "confirmed, where it costs anything"),
        (
            "Budget",
            (
                "enough is left in every month it touches, and no more than 80 % of a month is set aside with it, "
                "unless its budget says another percentage"
            ),
        ),
    }
    lax = Thresholds(unconfirmed_usd=Decimal(200), automatic_beyond_soft_budget=True)
    assert facts(lax) >= {
        ("Cost centre", "confirmed, or up to $200 within 7 days"),
        ("Budget", "enough is left in every month it touches"),
    }


def facts(numbers: Thresholds) -> set[tuple[str, str]]:
    """The rules of the page."""
    return {(each["label"], each["text"]) for each in rules(numbers)}


def test_the_examples_have_every_answer(scene: Scene) -> None:
    rows = context(timezone.now())["rows"]
    answers = {whole_cell(row["cells"][2])["word"] for row in rows}
    assert answers == {
        "Automatic",
        "Platform leads",
        "Platform leads, then engineering leadership",
        "Not possible",
    }


def test_a_new_version_changes_page_and_examples(client: Client, scene: Scene) -> None:
    factories.policy(Thresholds(automatic_gpus=4), now=timezone.now())
    client.force_login(scene.ada)
    response = client.get("/policy/")
    assert "Policy 2" in response.content.decode()
    assert {"label": "GPUs in one request", "text": "up to 4"} in response.context[
        "rules"
    ]


def test_the_examples_write_a_named_group_as_it_is_named(scene: Scene) -> None:
    group = StepPlan(by=f"group:{factories.group_oid(7)}", name="Security")
    factories.policy(
        Policy(routes=(Route(name="usual", steps=(LEADS, group)),)), now=timezone.now()
    )
    answers = {
        whole_cell(row["cells"][2])["word"] for row in context(timezone.now())["rows"]
    }
    assert answers == {"Automatic", "Platform leads, then Security", "Not possible"}


def test_for_whom_other_numbers_hold_is_said(client: Client, scene: Scene) -> None:
    nights = Override(
        where=Where(offerings=("notebook",), tiers=("trusted",)),
        set={"automatic_gpus": 4, "window_usd_team": None},
    )
    factories.policy(Policy(overrides=(nights,)), now=timezone.now())
    client.force_login(scene.mallory)
    said = parsed(client.get("/policy/").content.decode()).words
    assert (
        "Notebook, trusted GPUs in one request: 4 GPUs · A team’s limit within the window, money: no limit"
        in said
    )


def test_a_policy_that_comes_is_told_with_what_it_changes(
    client: Client, scene: Scene
) -> None:
    now = timezone.now()
    factories.policy(Thresholds(automatic_gpus=4), now=now + timedelta(days=2))
    client.force_login(scene.mallory)
    said = parsed(client.get("/policy/").content.decode()).words
    assert "Policy 1" in said
    assert "Policy 2 comes into force" in said
    assert "GPUs in one request 2 GPUs 4 GPUs" in said


def test_a_policy_that_never_comes_is_not_told(client: Client, scene: Scene) -> None:
    now = timezone.now()
    factories.policy(Thresholds(automatic_gpus=4), now=now + timedelta(days=2))
    factories.policy(Thresholds(automatic_gpus=3), now=now)
    client.force_login(scene.mallory)
    said = parsed(client.get("/policy/").content.decode()).words
    assert "Policy 3" in said
    assert "comes into force" not in said
