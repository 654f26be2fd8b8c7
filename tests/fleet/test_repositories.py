"""Delivery by Git is set by platform leads, with an address, a branch and credentials that could work."""

from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from accounts.roles import Role
from fleet.models import Cluster
from provisioning.git.commits import ClusterCommit
from tests import factories
from tests.calling import Caller

BY_GIT = {"delivery": "git", "git_url": "https://github.com/platform/fleet.git"}


@pytest.fixture
def priya(db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Caller:
    """A platform lead, and a folder with credentials and repositories."""
    (tmp_path / "robot").write_text("token")
    monkeypatch.setattr(settings.ENV, "git_credentials_dir", tmp_path)
    monkeypatch.setattr(settings.ENV, "git_local_dir", tmp_path / "git")
    factories.cluster("training")
    return Caller(factories.person("Priya", Role.PLATFORM_LEAD))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"delivery": "git"}, "git_url"),
        ({"git_url": "file:///etc"}, "git_url"),
        ({"git_url": "ext::id"}, "git_url"),
        ({"git_url": "http://github.com/a/b"}, "git_url"),
        ({"git_url": "--upload-pack=id"}, "git_url"),
        ({"git_url": "https://127.0.0.1/a/b.git"}, "git_url"),
        ({"git_url": "https://0x7f000001/a/b"}, "git_url"),
        ({"git_url": "https://[::1]/a/b"}, "git_url"),
        ({"git_url": "https://localhost/a/b"}, "git_url"),
        ({"git_url": "https://169.254.169.254/a/b"}, "git_url"),
        ({"git_url": "https://user:canary@github.com/a/b"}, "git_url"),
        ({"git_url": "/etc/passwd"}, "git_url"),
        (BY_GIT | {"git_branch": "-x"}, "git_branch"),
        (BY_GIT | {"git_branch": "a..b"}, "git_branch"),
        (BY_GIT | {"git_credentials": "../robot"}, "git_credentials"),
        (BY_GIT | {"git_credentials": "none"}, "git_credentials"),
        (BY_GIT | {"git_credentials": ".."}, "git_credentials"),
        (BY_GIT | {"git_way": "pull-request"}, "git_credentials"),
        (BY_GIT | {"git_url": "ssh://git@github.com/a/b"}, "git_credentials"),
        (
            {
                "git_way": "pull-request",
                "git_url": "git@github.com:a/b",
                "git_credentials": "robot",
            },
            "git_url",
        ),
    ],
)
def test_what_could_not_work_is_said_at_its_field(
    priya: Caller, change: dict[str, str], field: str
) -> None:
    answer = priya.patch("clusters/training/", change)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == f"/{field}"
    assert "canary" not in answer.content.decode()
    assert Cluster.objects.get().delivery == "apply"


def test_it_is_set_and_shown_and_the_file_is_named_to_leads_alone(
    priya: Caller, client: Client
) -> None:
    wanted = BY_GIT | {
        "git_way": "pull-request",
        "git_credentials": "robot",
        "git_branch": "live",
    }
    told = priya.patch("clusters/training/", wanted).json()
    assert {name: told[name] for name in wanted} == wanted
    ada = factories.person("Ada")
    assert Caller(ada).get("clusters/training/").json()["git_credentials"] is None
    client.force_login(ada)
    assert "nothing yet" in client.get("/clusters/training/").content.decode()
    sha = "0123456789abcdef0123456789abcdef01234567"
    ClusterCommit.objects.create(
        cluster=Cluster.objects.get(), sha=sha, at=timezone.now()
    )
    page = client.get("/clusters/training/").content.decode()
    for words in (
        "not observed",
        "Repository answers",
        "Git: open a pull request",
        "https://github.com/platform/fleet.git",
        "live",
        "0123456",
    ):
        assert words in page
    assert sha not in page


def test_the_form_changes_it_and_keeps_what_was_not_sent(
    priya: Caller, client: Client
) -> None:
    client.force_login(factories.person("Lead", Role.PLATFORM_LEAD))
    assert (
        "Git credentials file" in client.get("/clusters/training/edit").content.decode()
    )
    usual = {
        "title": "Training",
        "region": "eastus",
        "purpose": "training",
        "cohort": "quartermaster",
        "borrow_percent": "0",
        "enabled": "on",
    }
    sent = client.post(
        "/clusters/training/edit", usual | BY_GIT | {"git_branch": "live"}
    )
    assert sent.status_code == 302, sent.content
    client.post("/clusters/training/edit", usual | {"git_url": BY_GIT["git_url"]})
    found = Cluster.objects.get()
    assert (found.delivery, found.git_url, found.git_branch) == (
        "git",
        BY_GIT["git_url"],
        "live",
    )
