"""Against a portal that is served: asking for GPUs, following the request, renewing it and giving back."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.roles import Role
from approvals.decisions.actions import ask_back
from approvals.models import Decision, Request
from notices.models import Notice
from tests import factories
from tests.qm.conftest import Signed
from tests.qm.test_runs import cells

ASK = ("ask", "--gpus", "1", "--for", "2d")


@pytest.mark.slow
def test_gpus_are_asked_for_held_renewed_and_given_back(signed: Signed) -> None:
    dry = signed.terminal(*ASK, "--dry-run")
    assert dry.exit_code == 0, dry.stderr
    assert "Automatic." in dry.stdout
    assert " USD in all, " in dry.stdout
    before = Request.objects.count()

    asked = signed.terminal(*ASK, "--key", "mine", "--flavor", "a100")

    assert asked.exit_code == 0, asked.stderr
    number = asked.stdout.strip()
    assert Request.objects.count() == before + 1
    # Sent again as its advice says, it is the same one.
    until = Request.objects.latest("pk").until.strftime("%Y-%m-%dT%H:%M:%SZ")
    again = ("ask", "--gpus", "1", "--until", until, "--flavor", "a100")
    assert signed.terminal(*again, "--key", "mine").stdout.strip() == number
    assert Request.objects.count() == before + 1
    rows = cells(signed.terminal("requests", "--mine").stdout)
    assert rows[1].startswith(f"{number} 1 × A100 ")
    shown = cells(signed.terminal("request", number).stdout)
    assert "decided by the policy" in shown
    assert any("The policy approved" in line for line in shown)
    held = cells(signed.terminal("allocations").stdout)
    assert any(row.startswith(f"{number} 1 × A100 ") for row in held)

    later = Request.objects.get(pk=number).until + timedelta(days=1)
    end = later.strftime("%Y-%m-%dT%H:%M:%SZ")
    renew = ("renew", number, "--until", end, "--reason", "Longer.", "--key", "more")
    renewed = signed.terminal(*renew)
    assert renewed.exit_code == 0, renewed.stderr
    longer = renewed.stdout.strip()
    assert Request.objects.get(pk=longer).renews_id == int(number)
    assert signed.terminal(*renew).stdout.strip() == longer
    assert Request.objects.count() == before + 2

    effect = cells(signed.terminal("give-back", longer, "--dry-run").stdout)
    assert "stays nothing" in effect
    assert "quota 3 GPUs now, 2 then" in effect
    gone = signed.terminal("give-back", longer)
    assert (gone.exit_code, gone.stderr) == (
        0,
        f"Request {longer}: given back, nothing of it stays.\n",
    )
    assert signed.terminal("request", longer, "--wait").exit_code == 1
    assert signed.terminal("give-back", longer).exit_code == 3


@pytest.mark.slow
def test_what_people_decide_waits_says_so_and_is_withdrawn(signed: Signed) -> None:
    large = ("ask", "--gpus", "5", "--for", "2d")
    dry = signed.terminal(*large, "--dry-run")
    assert "people decide above 2" in dry.stdout
    refused = signed.terminal(*large)
    assert (refused.exit_code, refused.stdout) == (3, "")
    assert "--reason: " in refused.stderr

    number = signed.terminal(*large, "--reason", "For the review.").stdout.strip()

    [row] = [
        line
        for line in cells(signed.terminal("requests", "--state", "waiting").stdout)
        if line.startswith(f"{number} ")
    ]
    assert row.endswith("Platform leads decide")
    assert "reason For the review." in cells(signed.terminal("request", number).stdout)
    assert signed.terminal("comment", number, "On Friday.").exit_code == 0
    assert "Ada Okafor wrote: On Friday." in signed.terminal("request", number).stdout
    # Nobody has asked anything yet.
    assert signed.terminal("answer", number, "Yes.").exit_code == 3
    assert signed.terminal("withdraw", number).exit_code == 0
    assert signed.terminal("withdraw", number).exit_code == 3
    assert signed.terminal.json("requests", "--state", "waiting")["results"] == []
    over = signed.terminal.json("requests", "--all")["results"]
    assert {one["id"]: one["stage"] for one in over}[int(number)] == "withdrawn"


def test_what_an_approver_asks_is_answered_once_and_they_are_told(
    signed: Signed,
) -> None:
    large = ("ask", "--gpus", "5", "--for", "2d", "--reason", "For the review.")
    number = signed.terminal(*large).stdout.strip()
    priya = factories.person("Priya Raman", Role.PLATFORM_LEAD)
    ask_back(
        int(number),
        by=priya,
        expected_version=1,
        question="Why five?",
        now=timezone.now(),
    )
    shown = signed.terminal("request", number)
    assert f"Whoever asked for it answers: qm answer {number} TEXT\n" in shown.stderr

    done = signed.terminal("answer", number, "Five folds.")

    assert (done.exit_code, done.stderr) == (
        0,
        f"Request {number}: answered. Platform leads decide.\n",
    )
    answers = Decision.objects.filter(request=int(number), verdict="answer")
    assert [(one.by, one.reason) for one in answers] == [
        (signed.watched.ada, "Five folds.")
    ]
    told = Notice.objects.filter(person=priya, subject_id=number)
    assert [one.message["title"] for one in told] == [
        "An answer about 5 × A100 for Vision"
    ]
    again = signed.terminal("answer", number, "Five folds.")
    assert (again.exit_code, answers.count()) == (3, 1)
    assert signed.of(priya)("answer", number, "Five folds.").exit_code != 0


@pytest.mark.slow
def test_more_than_there_are_is_not_sent(signed: Signed) -> None:
    before = Request.objects.count()
    refused = signed.terminal("ask", "--gpus", "999", "--for", "2d")
    assert refused.exit_code == 3
    assert "no more than the cluster has" in refused.stderr
    unseen = signed.terminal("request", "999999")
    assert (unseen.exit_code, unseen.stdout) == (6, "")
    assert Request.objects.count() == before
