"""A pull request that is no longer wanted is closed and its branch goes, before anything is said to be true or gone."""

import pytest

from allocations.changes import refresh
from allocations.ends.actions import give_back
from allocations.models import Leftover
from audit.actors import PORTAL
from connectors.kubernetes import rendered
from provisioning.clusters import observe as look
from provisioning.desired.manifests import tenancy_objects
from provisioning.git.commits import ClusterCommit, TenancyCommit
from provisioning.git.repository import file_name
from provisioning.stages import Stage
from reconciling import lease
from tests import factories
from tests.provisioning.test_git_delivery import Followed, condition, followed
from tests.provisioning.test_git_pull_requests import TOKEN, branch, hub
from tests.pull_requests import Hub

__all__ = ["followed", "hub"]
CLOSED = "This is no longer wanted, or has come into the repository another way: Quartermaster closed it."


@pytest.fixture
def regretted(hub: Hub, followed: Followed) -> Hub:
    """What was merged is wanted again, while more GPUs, which were given back, wait in a second pull request."""
    followed.reconcile()
    hub.merge()
    followed.reconcile()
    held = factories.allocation(followed.ada, followed.row, followed.a100, gpus=2)
    followed.reconcile()
    assert [pull["state"] for pull in hub.pulls] == ["closed", "open"]
    give_back(held.pk, gpus=None, by=followed.ada, now=followed.time)
    Leftover.objects.all().delete()
    refresh(followed.row, actor=PORTAL, now=followed.time)
    return hub


def leave(followed: Followed) -> None:
    factories.leave(followed.row, to="removing", at=followed.time)


@pytest.mark.slow
def test_what_was_given_back_before_it_was_merged_cannot_be_merged_any_more(
    regretted: Hub, followed: Followed
) -> None:
    before = regretted.theirs.files()
    assert followed.reconcile() == 0
    assert (regretted.pulls[-1]["state"], regretted.pulls[-1]["merged_at"]) == (
        "closed",
        None,
    )
    assert regretted.pulls[-1]["title"].startswith("No longer wanted: inference: ")
    assert regretted.comments == [(13, CLOSED)]
    assert (regretted.theirs.tip(branch(followed)), regretted.theirs.files()) == (
        "",
        before,
    )
    assert (followed.row.is_settled, condition(followed.row)[0]) == (True, "Committed")
    found = TenancyCommit.objects.get()
    assert (found.pull, found.sha) == (None, regretted.theirs.tip())
    asked = len(regretted.asked)
    assert followed.reconcile() == 0
    assert len(regretted.asked) == asked


@pytest.mark.slow
def test_what_was_given_back_goes_out_of_one_that_still_waits_for_the_rest(
    hub: Hub, followed: Followed
) -> None:
    followed.reconcile()
    hub.merge()
    held = factories.allocation(followed.ada, followed.row, followed.a100, gpus=2)
    followed.reconcile()
    # What still runs has room for a while: some of what waits is wanted still, and the share is not.
    give_back(held.pk, gpus=None, by=followed.ada, now=followed.time)
    assert followed.reconcile() == 1
    files = hub.theirs.files(branch(followed))
    wanted = {
        f"{followed.folder}/{file_name(one)}": rendered(one)
        for one in tenancy_objects(followed.row.desired)
    }
    assert {path: files[path] for path in wanted} == wanted
    assert [pull["state"] for pull in hub.pulls] == ["closed", "open"]


@pytest.mark.slow
def test_nothing_of_a_team_that_left_before_its_first_one_was_merged_can_be_merged(
    hub: Hub, followed: Followed
) -> None:
    followed.reconcile()
    leave(followed)
    hub.fails += [503]
    assert followed.reconcile() == 0
    assert followed.row.stage == Stage.REMOVING
    assert followed.reconcile() == 0
    assert followed.row.stage == Stage.GONE
    assert (hub.pulls[0]["state"], hub.theirs.tip(branch(followed))) == ("closed", "")


@pytest.mark.slow
@pytest.mark.parametrize("at", ["GET", "PATCH"])
@pytest.mark.parametrize(
    ("status", "reason"),
    [(401, "Refused"), (403, "Refused"), (404, "Refused"), (503, "WillTryAgain")],
)
def test_nothing_is_true_before_it_is_closed(
    regretted: Hub, followed: Followed, at: str, status: int, reason: str
) -> None:
    regretted.before[at] = lambda: regretted.fails.append(status)
    assert followed.reconcile() == 0
    found, message = condition(followed.row)
    assert (found, str(status) in message, TOKEN in message) == (reason, True, False)
    assert (followed.row.is_settled, regretted.pulls[-1]["state"]) == (False, "open")
    assert regretted.theirs.tip(branch(followed))
    assert followed.reconcile() == 0
    assert (followed.row.is_settled, regretted.pulls[-1]["state"]) == (True, "closed")
    assert regretted.theirs.tip(branch(followed)) == ""


@pytest.mark.slow
def test_a_branch_that_never_got_one_goes_too(hub: Hub, followed: Followed) -> None:
    hub.before["GET"] = lambda: hub.fails.append(503)
    followed.reconcile()
    assert hub.theirs.tip(branch(followed))
    leave(followed)
    assert followed.reconcile() == 0
    assert (hub.pulls, hub.comments, hub.theirs.tip(branch(followed))) == ([], [], "")
    assert followed.row.stage == Stage.GONE


@pytest.mark.slow
def test_what_the_teams_share_is_not_said_to_be_in_a_commit_that_is_gone(
    hub: Hub, followed: Followed
) -> None:
    assert look.look_at(followed.cluster.pk, now=followed.now)
    waits = ClusterCommit.objects.get()
    assert (waits.pull, waits.sha) == (
        12,
        hub.theirs.tip("quartermaster/inference/cluster"),
    )
    hub.theirs.push(dict(hub.theirs.files("quartermaster/inference/cluster")))
    assert look.look_at(followed.cluster.pk, now=followed.now)
    assert (
        hub.pulls[0]["state"],
        hub.theirs.tip("quartermaster/inference/cluster"),
    ) == ("closed", "")
    found = ClusterCommit.objects.get()
    assert (found.pull, found.sha) == (None, hub.theirs.tip())
    hub.theirs.push({"other.txt": b"theirs"})
    assert look.look_at(followed.cluster.pk, now=followed.now)
    assert ClusterCommit.objects.get().sha == found.sha


@pytest.mark.slow
def test_an_answer_that_lists_nothing_is_not_taken_for_none(
    regretted: Hub, followed: Followed
) -> None:
    regretted.lists = False
    assert followed.reconcile() == 0
    assert condition(followed.row) == (
        "WillTryAgain",
        "127.0.0.1 gave an answer that is no list.",
    )
    assert (
        regretted.pulls[-1]["state"],
        bool(regretted.theirs.tip(branch(followed))),
    ) == ("open", True)


@pytest.mark.slow
def test_one_that_people_closed_already_is_left_as_it_is(
    regretted: Hub, followed: Followed
) -> None:
    regretted.close()
    before = dict(regretted.pulls[-1])
    assert followed.reconcile() == 0
    assert (regretted.pulls[-1], regretted.comments) == (before, [])
    assert regretted.theirs.tip(branch(followed)) == ""
    assert followed.row.is_settled


@pytest.mark.slow
@pytest.mark.parametrize("at", ["GET", "PATCH"])
def test_one_that_people_merge_at_the_same_moment_is_undone_by_another(
    regretted: Hub, followed: Followed, at: str
) -> None:
    regretted.before[at] = regretted.merge
    assert followed.reconcile() == 1
    assert condition(followed.row)[0] == "WaitingForMerge"
    assert [pull["state"] for pull in regretted.pulls] == ["closed", "closed", "open"]
    regretted.merge()
    assert followed.reconcile() == 0
    assert followed.row.is_settled
    assert (
        b'"requests.nvidia.com/gpu": "2"'
        not in regretted.theirs.files()[followed.quota]
    )


@pytest.mark.slow
def test_what_is_wanted_after_all_gets_another_if_the_first_was_just_closed(
    regretted: Hub, followed: Followed
) -> None:
    regretted.before["POST"] = lambda: regretted.fails.append(503)
    assert followed.reconcile() == 0
    assert (regretted.pulls[-1]["state"], condition(followed.row)[0]) == (
        "closed",
        "WillTryAgain",
    )
    factories.request(followed.ada, followed.row, followed.a100, gpus=2)
    followed.reconcile()
    assert condition(followed.row)[0] == "WaitingForMerge"
    assert [pull["state"] for pull in regretted.pulls] == ["closed", "closed", "open"]


@pytest.mark.slow
def test_the_ones_of_other_teams_and_of_people_stay_open(
    regretted: Hub, followed: Followed
) -> None:
    mine = followed.tenancy
    followed.tenancy = factories.tenancy(factories.team("Speech"), followed.cluster)
    followed.reconcile()
    speech = branch(followed)
    followed.theirs.push({"by-hand.txt": b"theirs"}, branch="by-hand")
    hand = {
        "number": 99,
        "state": "open",
        "merged_at": None,
        "title": "By hand",
        "base": "main",
        "head": "by-hand",
    }
    regretted.pulls.append(hand)
    # As a server answers that does not understand what it is asked to leave out.
    regretted.shows_all = True
    followed.tenancy = mine
    assert followed.reconcile() == 0
    assert {pull["number"]: pull["state"] for pull in regretted.pulls} == {
        12: "closed",
        13: "closed",
        14: "open",
        99: "open",
    }
    assert regretted.theirs.tip(speech)


@pytest.mark.slow
def test_who_lost_the_lease_closes_nothing(
    regretted: Hub, followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease.Lease, "renew", lambda self, now: False)
    assert followed.reconcile() == 0
    assert (
        regretted.pulls[-1]["state"],
        bool(regretted.theirs.tip(branch(followed))),
    ) == ("open", True)
