"""The repository of a profile's development container, as Git and VS Code find it."""

import subprocess
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import time_machine
from django.conf import settings
from django.test import Client
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from accounts.roles import Role
from notebooks.models import ProfileVersion
from notebooks.profile_desk import actions
from tests import factories
from tests.calling import Caller
from tests.notebooks.documents import CPU


@pytest.fixture
def lead() -> User:
    return factories.person("Priya Nair", Role.PLATFORM_LEAD)


def publish(text: str, lead: User) -> None:
    """Let people choose the profile."""
    actions.save(text, by=lead, now=timezone.now())
    actions.publish("cpu", by=lead)


def told(lead: User) -> dict[str, str]:
    """What a client is told of the published profile."""
    if not ProfileVersion.objects.exists():
        publish(CPU, lead)
    found: dict[str, str] = Caller(lead).get("profiles/cpu/devcontainer/").json()
    return found


def path_of(address: str) -> str:
    """Where a client of tests finds the repository's branches."""
    return f"{urlsplit(address).path}/info/refs"


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_git_clones_what_the_link_for_vs_code_names(
    live_server: LiveServer, lead: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings, "PUBLIC_URL", live_server.url)
    found = told(lead)
    link = urlsplit(found["vscode"])
    assert (link.scheme, link.netloc, link.path) == (
        "vscode",
        "ms-vscode-remote.remote-containers",
        "/cloneInVolume",
    )
    assert parse_qs(link.query)["url"] == [found["repository"]]
    clone = ["git", "-c", "http.proxy=", "clone", "--quiet", found["repository"]]
    subprocess.run(clone, cwd=tmp_path, check=True, timeout=60)
    assert (tmp_path / "cpu/.devcontainer/devcontainer.json").read_text() == found[
        "json"
    ]
    assert "version 1" in (tmp_path / "cpu/README.md").read_text()


@pytest.mark.django_db
def test_whoever_has_the_address_reads_it_for_a_day_and_nobody_without(
    lead: User,
) -> None:
    path, nobody = path_of(told(lead)["repository"]), Client()
    assert nobody.get(path).status_code == 200
    assert nobody.get(path.replace("/cpu.git/", "/other.git/")).status_code == 404
    assert (
        nobody.get(path.replace("/devcontainers/", "/devcontainers/x")).status_code
        == 404
    )
    assert nobody.get(path.replace("info/refs", "config")).status_code == 404
    with time_machine.travel(timezone.now() + timedelta(days=1, minutes=1), tick=False):
        assert nobody.get(path).status_code == 404


@pytest.mark.django_db
def test_a_version_that_people_can_choose_no_more_is_there_no_more(lead: User) -> None:
    path = path_of(told(lead)["repository"])
    publish(CPU.replace("cpus: 0.5", "cpus: 2"), lead)
    assert Client().get(path).status_code == 404
    assert Client().get(path_of(told(lead)["repository"])).status_code == 200
