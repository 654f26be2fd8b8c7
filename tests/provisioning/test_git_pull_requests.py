"""Changes that go through pull requests: against a server with Git's own program and GitHub's paths and answers."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings

from connectors import github
from fleet.models import Cluster
from provisioning.git.commits import TenancyCommit
from provisioning.reconcile import reconcile
from tests import factories
from tests.provisioning.test_git_delivery import Followed, condition, followed
from tests.pull_requests import Hub
from tests.remotes import bare, over_https

__all__ = ["followed"]
TOKEN, NEW_TOKEN = "canary-8c41", "canary-5d07"


@pytest.fixture
def hub(
    followed: Followed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Hub]:
    """The followed cluster's repository behind a server, changed by pull requests alone."""
    theirs = bare(tmp_path / "served", "platform/fleet.git")
    theirs.push({"README.md": b"theirs"})
    (tmp_path / "robot").write_text(TOKEN + "\n")
    hub = Hub(theirs)
    with over_https(
        tmp_path / "served", tmp_path, token=TOKEN, new_token=NEW_TOKEN, api=hub
    ) as served:
        monkeypatch.setattr(settings.ENV, "git_credentials_dir", tmp_path)
        monkeypatch.setattr(settings.ENV, "git_hosts_allowed", [served.host])
        monkeypatch.setattr(settings.ENV, "ca_file", Path(served.ca_file))
        url = f"https://{served.host}/platform/fleet.git"
        Cluster.objects.update(
            git_url=url, git_way="pull-request", git_credentials="robot"
        )
        followed.theirs = theirs
        yield hub


def branch(followed: Followed) -> str:
    return f"quartermaster/inference/{followed.tenancy.namespace}"


@pytest.mark.slow
def test_a_change_waits_in_a_pull_request_until_people_merge_it(
    hub: Hub, followed: Followed
) -> None:
    assert followed.reconcile() == 1
    short = hub.theirs.tip(branch(followed))[:7]
    assert condition(followed.row) == (
        "WaitingForMerge",
        f"Committed {short}; pull request 12 waits to be merged.",
    )
    assert (followed.row.is_settled, hub.theirs.files()) == (
        False,
        {"README.md": b"theirs"},
    )
    assert followed.row.explanation.startswith(
        "The change counts once its pull request is merged."
    )
    [pull] = hub.pulls
    assert (pull["base"], pull["title"]) == (
        "main",
        f"inference: {followed.tenancy.namespace}, generation 1",
    )
    assert "Team: Vision" in pull["body"]
    assert TenancyCommit.objects.get().pull == 12
    assert followed.reconcile() == 0
    assert len(hub.pulls) == 1
    hub.merge()
    assert followed.reconcile() == 0
    assert (followed.row.is_settled, condition(followed.row)[0]) == (True, "Committed")
    assert {header for _, header in hub.asked} == {f"Bearer {TOKEN}"}


def waits_of(followed: Followed, *, during: timedelta) -> list[timedelta]:
    """How long each pass leaves the tenancy alone, while workers do what is due."""
    waits, end = [], followed.time + during
    while followed.time < end:
        waits.append(followed.row.requeue_at - followed.time)
        followed.time = followed.row.requeue_at
        assert reconcile(followed.tenancy.pk, now=followed.now, only_due=True) == 0
    return waits


@pytest.mark.slow
@pytest.mark.parametrize("leaves", [False, True])
def test_one_that_waits_is_asked_after_ever_less_often(
    hub: Hub, followed: Followed, leaves: bool
) -> None:
    followed.reconcile()
    if leaves:
        hub.merge()
        followed.reconcile()
        factories.leave(followed.row, to="removing", at=followed.time)
        followed.reconcile()
    hub.asked.clear()
    waits = waits_of(followed, during=timedelta(hours=1))
    # Of the 5,000 calls that GitHub answers in an hour; in the first one, in which they are most.
    assert len(hub.asked) == len(waits) <= 5_000 / 150
    assert waits == sorted(waits)
    assert waits[:4] == [timedelta(seconds=15)] * 4
    assert waits[-1] == timedelta(minutes=5)


@pytest.mark.slow
def test_one_that_waited_for_long_is_asked_after_soon_once_more_is_wanted(
    hub: Hub, followed: Followed
) -> None:
    followed.reconcile()
    followed.time += timedelta(hours=1)
    followed.reconcile()
    assert followed.row.requeue_at == followed.time + timedelta(minutes=5)
    factories.request(followed.ada, followed.row, followed.a100, gpus=2)
    followed.reconcile()
    assert followed.row.requeue_at == followed.time + timedelta(seconds=15)


@pytest.mark.slow
def test_what_is_wanted_next_goes_into_the_same_pull_request(
    hub: Hub, followed: Followed
) -> None:
    followed.reconcile()
    factories.request(followed.ada, followed.row, followed.a100, gpus=2)
    hub.theirs.push({"other.txt": b"theirs"})
    assert followed.reconcile() == 1
    assert len(hub.pulls) == 1
    found = hub.theirs.files(branch(followed))
    assert found["other.txt"] == b"theirs"
    assert (
        json.loads(found[followed.quota])["spec"]["hard"]["requests.nvidia.com/gpu"]
        == "2"
    )
    assert len(hub.theirs.log(branch(followed))) == 3


@pytest.mark.slow
def test_another_team_that_was_merged_first_makes_no_conflict(
    hub: Hub, followed: Followed
) -> None:
    followed.reconcile()
    first = dict(hub.theirs.files(branch(followed)))
    mine = followed.tenancy
    followed.tenancy = factories.tenancy(factories.team("Speech"), followed.cluster)
    followed.reconcile()
    hub.merge()
    followed.tenancy = mine
    assert followed.reconcile() == 1
    listed = hub.theirs.files(branch(followed))[
        "clusters/inference/tenancies/kustomization.yaml"
    ]
    assert listed.count(b"\n- ") == 2
    assert set(first) < set(hub.theirs.files(branch(followed)))


@pytest.mark.slow
def test_one_that_was_closed_without_merging_is_not_opened_again_by_itself(
    hub: Hub, followed: Followed
) -> None:
    followed.reconcile()
    hub.close()
    assert followed.reconcile() == 0
    assert condition(followed.row) == (
        "Refused",
        "Pull request 12 was closed without being merged. Open it again, or change what is wanted.",
    )
    factories.request(followed.ada, followed.row, followed.a100, gpus=1)
    assert followed.reconcile() == 1
    assert [pull["state"] for pull in hub.pulls] == ["closed", "open"]


def test_one_that_exists_already_is_found(hub: Hub, followed: Followed) -> None:
    known = {
        "number": 7,
        "state": "open",
        "merged_at": None,
        "title": "Ours",
        "base": "main",
    }
    hub.pulls.append(known | {"head": branch(followed)})
    # As between two workers: not there when it was looked for, and there when it was to be opened.
    hub.hidden = 1
    followed.reconcile()
    assert TenancyCommit.objects.get().pull == 7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "reason", "explained"),
    [
        (401, "Refused", "does not accept the portal's credentials"),
        (403, "Refused", "do not allow it"),
        (404, "Refused", "shows the portal no such repository"),
        (422, "Refused", "takes no such pull request"),
        (503, "WillTryAgain", "Git host does not answer as"),
        (429, "WillTryAgain", "Git host does not answer as"),
    ],
)
def test_what_github_refuses_is_said_without_the_token_and_explained(
    hub: Hub,
    followed: Followed,
    status: int,
    reason: str,
    explained: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    hub.fails += [status]
    followed.reconcile()
    found, message = condition(followed.row)
    assert (found, str(status) in message) == (reason, True)
    assert explained in followed.row.explanation
    assert TOKEN not in message + caplog.text + str(followed.row.objects_seen)
    assert followed.reconcile() == 0
    assert condition(followed.row)[0] == "WaitingForMerge"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "headers", "words", "wait"),
    [
        (
            403,
            {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1800"},
            "API rate limit exceeded",
            1_800,
        ),
        (
            429,
            {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1800"},
            "API rate limit exceeded",
            1_800,
        ),
        (
            403,
            {"Retry-After": "600", "X-RateLimit-Remaining": "0"},
            "You have exceeded a secondary rate limit.",
            600,
        ),
        (
            403,
            {"X-RateLimit-Remaining": "4500", "X-RateLimit-Reset": "1800"},
            "You have exceeded a secondary rate limit.",
            60,
        ),
        (429, {}, "Slow down", 60),
    ],
)
def test_where_githubs_limit_is_reached_it_is_tried_again_when_github_says(
    hub: Hub,
    followed: Followed,
    status: int,
    headers: dict[str, str],
    words: str,
    wait: int,
) -> None:
    left = int(headers.get("X-RateLimit-Reset", 0))
    reset = {"X-RateLimit-Reset": str(int(time.time()) + left)} if left else {}
    hub.fails, hub.failing_with, hub.words = [status], headers | reset, words
    followed.reconcile()
    assert condition(followed.row) == (
        "WillTryAgain",
        f"127.0.0.1 answered {status}.",
    )
    waits = (followed.row.requeue_at - followed.time).total_seconds()
    # Some seconds of the test's own time are over by now.
    assert wait - 30 < waits <= wait


def test_what_the_credentials_may_not_do_is_no_limit(
    hub: Hub, followed: Followed
) -> None:
    hub.fails, hub.failing_with = [403], {"X-RateLimit-Remaining": "4999"}
    followed.reconcile()
    assert condition(followed.row)[0] == "Refused"


@pytest.mark.slow
def test_where_githubs_limit_is_reached_nobody_calls_it_with_the_same_credentials(
    hub: Hub, followed: Followed
) -> None:
    hub.fails, hub.failing_with = [429], {"Retry-After": "600"}
    followed.reconcile()
    hub.asked.clear()
    followed.tenancy = factories.tenancy(factories.team("Speech"), followed.cluster)
    followed.reconcile()
    assert (hub.asked, condition(followed.row)) == (
        [],
        ("WillTryAgain", "127.0.0.1 answered 429."),
    )
    # A minute of the pause is over.
    assert followed.row.requeue_at == followed.time + timedelta(seconds=600 - 61)
    followed.time += timedelta(seconds=600)
    followed.reconcile()
    assert condition(followed.row)[0] == "WaitingForMerge"


@pytest.mark.slow
def test_a_new_token_under_the_same_name_does_not_wait_for_the_limit_of_the_old_one(
    hub: Hub, followed: Followed, tmp_path: Path
) -> None:
    hub.fails, hub.failing_with = [429], {"Retry-After": "600"}
    followed.reconcile()
    assert condition(followed.row)[0] == "WillTryAgain"
    (tmp_path / "robot").write_text(NEW_TOKEN + "\n")
    followed.reconcile()
    assert condition(followed.row)[0] == "WaitingForMerge"


def all_wait(followed: Followed, *, teams: int) -> list[Followed]:
    """So many teams on the cluster, each of which has a pull request that waits."""
    rows = [factories.tenancy(factories.team(), followed.cluster) for _ in range(teams)]
    found = [replace(followed, tenancy=row) for row in [followed.tenancy, *rows[1:]]]
    for one in found:
        one.reconcile()
    return found


@pytest.mark.slow
def test_however_many_wait_in_a_repository_one_list_tells_of_all(
    hub: Hub, followed: Followed
) -> None:
    waiting = all_wait(followed, teams=4)
    hub.asked.clear()
    now = followed.time + timedelta(hours=1)
    for one in waiting:
        one.time = now
        one.reconcile()
    assert len(hub.asked) == 1
    assert {condition(one.row)[0] for one in waiting} == {"WaitingForMerge"}
    assert [TenancyCommit.objects.get(tenancy=one.tenancy).pull for one in waiting] == [
        12,
        13,
        14,
        15,
    ]
    for one in waiting:
        one.reconcile()
    assert len(hub.asked) == 2


@pytest.mark.slow
def test_one_of_a_fork_is_not_taken_for_ours(hub: Hub, followed: Followed) -> None:
    followed.reconcile()
    theirs = {**hub.pulls[0], "number": 99, "owner": "somebody"}
    hub.pulls.append(theirs)
    followed.reconcile()
    assert TenancyCommit.objects.get().pull == 12


@pytest.mark.slow
def test_what_one_list_does_not_show_is_asked_for_by_itself(
    hub: Hub, followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(github, "PAGE_SIZE", 1)
    monkeypatch.setattr(github, "MAX_PAGES", 2)
    waiting = all_wait(followed, teams=3)
    hub.asked.clear()
    for one in waiting:
        one.time = followed.time + timedelta(hours=1)
        one.reconcile()
    assert len(hub.asked) == 2 + 1
    assert {condition(one.row)[0] for one in waiting} == {"WaitingForMerge"}
