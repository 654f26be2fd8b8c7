"""What opens a repository is read when its files change, and what they held before is forgotten."""

import os
from pathlib import Path

import pytest
from django.conf import settings

from connectors.errors import PermanentError
from connectors.git import Repository
from fleet.models import Cluster
from provisioning.git import remotes as git_remotes
from provisioning.git.remotes import repository_for
from tests.remotes import bare, over_ssh

CLUSTER = Cluster(
    git_url="https://github.com/platform/fleet.git", git_credentials="robot"
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for credentials."""
    monkeypatch.setattr(settings.ENV, "git_credentials_dir", tmp_path)
    monkeypatch.setattr(git_remotes, "_repositories", {})
    return tmp_path


def put(path: Path, text: str, *, at: int) -> None:
    """A file as an editor leaves it at that second."""
    path.write_text(text)
    os.utime(path, (at, at))


def kept() -> list[Repository]:
    return [repository for _, repository in git_remotes._repositories.values()]


def test_a_host_whose_line_is_added_is_known_without_a_restart(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = bare(folder / "served")
    theirs.push({"a.txt": b"1"})
    with over_ssh(folder / "served") as ssh:
        monkeypatch.setattr(settings.ENV, "git_hosts_allowed", [ssh.host])
        cluster = Cluster(
            git_url=f"ssh://git@{ssh.host}/fleet.git", git_credentials="robot"
        )
        put(folder / "robot", ssh.secret, at=1_800_000_000)
        with pytest.raises(PermanentError) as refused:
            repository_for(cluster).look("main")
        assert refused.value.code == "unknown_host"
        put(folder / "robot.known_hosts", ssh.known_hosts, at=1_800_000_000)
        assert repository_for(cluster).look("main").sha == theirs.tip()
        put(folder / "robot.known_hosts", "# taken back\n", at=1_800_000_060)
        with pytest.raises(PermanentError) as refused:
            repository_for(cluster).look("main")
        assert refused.value.code == "unknown_host"


def test_the_token_from_before_is_not_kept(folder: Path) -> None:
    put(folder / "robot", "first", at=1_800_000_000)
    assert repository_for(CLUSTER).remote.secret == "first"
    assert repository_for(CLUSTER) is repository_for(CLUSTER)
    put(folder / "robot", "second", at=1_800_000_060)
    assert repository_for(CLUSTER).remote.secret == "second"
    assert [repository.remote.secret for repository in kept()] == ["second"]


def test_two_clusters_keep_a_view_each_of_one_repository(folder: Path) -> None:
    put(folder / "robot", "first", at=1_800_000_000)
    put(folder / "other", "second", at=1_800_000_000)
    other = Cluster(git_url=CLUSTER.git_url, git_credentials="other")
    before = [repository_for(CLUSTER), repository_for(other)]
    assert [repository_for(CLUSTER), repository_for(other)] == before
    assert [repository.remote.secret for repository in kept()] == ["first", "second"]


def test_credentials_that_were_taken_away_are_not_used_from_memory(
    folder: Path,
) -> None:
    put(folder / "robot", "first", at=1_800_000_000)
    repository_for(CLUSTER)
    (folder / "robot").unlink()
    with pytest.raises(PermanentError) as refused:
        repository_for(CLUSTER)
    assert (refused.value.code, kept()) == ("no_credentials", [])
