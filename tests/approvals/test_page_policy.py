"""The policy page says the numbers that decide, and judges its examples by the same function."""

from django.test import Client
from django.utils import timezone

from approvals.policy_desk.limits_page import context
from policy.document import LEADS, Policy, Route, StepPlan, Thresholds
from tests import factories
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
    assert {"label": "GPUs in one ask", "text": "up to 4"} in response.context["rules"]


def test_the_examples_write_a_named_group_as_it_is_named(scene: Scene) -> None:
    group = StepPlan(by=f"group:{factories.group_oid(7)}", name="Security")
    factories.policy(
        Policy(routes=(Route(name="usual", steps=(LEADS, group)),)), now=timezone.now()
    )
    answers = {
        whole_cell(row["cells"][2])["word"] for row in context(timezone.now())["rows"]
    }
    assert answers == {"Automatic", "Platform leads, then Security", "Not possible"}
