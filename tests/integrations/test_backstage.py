"""A real Backstage and the portal itself: its templates and tools ask here, for whoever sits there."""

import subprocess
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.utils import timezone
from pydantic import SecretStr
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from accounts.directory import backstage as directory
from accounts.models import ApiToken, Team, User
from approvals.models import Request
from audit.events import Kind
from audit.models import Event
from notices.actions import tell
from notices.delivery import deliver_due
from notices.kinds import NoticeKind
from notices.message import Message
from notices.servers import outside
from sandbox.backstage import NOTICES_TOKEN
from tests import factories
from tests.integrations.real_backstage import (
    ALICE,
    CLIMATE,
    PACKAGE,
    RealBackstage,
    backstage,
    install,
)
from tests.services.process import wait_until
from tests.world import World, world

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
READER = "qm_00000bac_reads-for-the-catalog"


@pytest.fixture(scope="module")
def running(
    live_server: LiveServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RealBackstage]:
    """One for all tests: it takes seconds to start."""
    folder = tmp_path_factory.mktemp("backstage")
    with backstage(live_server.url, folder=folder, token=READER) as found:
        yield found


@pytest.fixture
def here(transactional_db: None) -> World:
    return world()


@pytest.fixture
def alice(here: World) -> User:
    """Somebody of the first team, in both."""
    return factories.person("Alice Moreau", teams=[here.own.team], oid=ALICE)


@pytest.fixture
def real(
    running: RealBackstage, here: World, alice: User, settings: Settings
) -> RealBackstage:
    """A backend with which the portal is connected, whose catalog has the teams."""
    ApiToken.objects.create(
        user=here.people["auditor"],
        name="catalog",
        prefix="00000bac",
        digest=ApiToken.hash_of(READER),
        scope="read",
        expires_at=timezone.now() + timedelta(hours=1),
    )
    running.join(settings)
    wait_until(
        lambda: running.entity("system", "gpu-team-vision") is not None,
        what="the team to be in the catalog",
    )
    return running


def form(**changes: Any) -> dict[str, Any]:
    """The template's form, filled in."""
    day = timezone.now() + timedelta(days=2)
    base = {
        "team": "system:default/gpu-team-vision",
        "flavor": "training-eastus/a100",
        "gpus": 1,
        "purpose": "training",
        "until": f"{day:%Y-%m-%d}",
    }
    return base | changes


def of_alice() -> list[Request]:
    return list(Request.objects.filter(requester__oid=ALICE))


def test_a_template_asks_for_who_filled_it_in_and_a_small_request_is_granted(
    real: RealBackstage,
) -> None:
    task = real.run("request-gpus", form())
    assert task.status == "completed", task.log
    [made] = of_alice()
    assert (made.state, made.gpus) == ("approved", 1)
    assert task.output["links"][0]["url"].endswith(f"/requests/{made.pk}/")
    asked = Event.objects.filter(kind=Kind.REQUEST_SUBMITTED).latest("seq")
    assert asked.actor_name == "Alice Moreau"


def test_a_large_request_waits_for_people(real: RealBackstage) -> None:
    task = real.run("request-gpus", form(gpus=32, reason="The detector."))
    assert task.status == "completed", task.log
    assert [made.state for made in of_alice()] == ["waiting"]


def test_whoever_waits_for_a_task_reads_why_it_was_refused(
    real: RealBackstage,
) -> None:
    task = real.run("request-gpus", form(flavor="training-eastus/h100"))
    assert task.status == "failed"
    assert "422: /flavor" in task.log, task.log
    assert of_alice() == []


def test_another_teams_is_not_there_for_them(real: RealBackstage) -> None:
    task = real.run("request-gpus", form(team="system:default/gpu-team-speech"))
    assert task.status == "failed"
    assert "404: " in task.log, task.log
    assert of_alice() == []


def test_who_has_not_been_in_the_portal_reads_what_to_do(
    real: RealBackstage, alice: User
) -> None:
    User.objects.filter(pk=alice.pk).update(signed_in_at=None)
    task = real.run("request-gpus", form())
    assert "401: Sign in to the portal once" in task.log, task.log


def newcomers(**changes: Any) -> dict[str, Any]:
    """The form in which Alice brings her group on board, filled in."""
    base = {
        "name": "Climate",
        "group": "group:default/climate-people",
        "cost_centre": "CC-9",
        "project": "models",
        "environment": "dev",
        "cluster": "training-eastus",
        "gpus": 0,
    }
    return base | changes


@pytest.mark.usefixtures("directory")
def test_a_template_brings_a_team_on_board(real: RealBackstage) -> None:
    task = real.run("bring-team-on-board", newcomers())
    assert task.status == "completed", task.log
    team = Team.objects.get(slug="climate")
    assert str(team.entra_group) == CLIMATE
    assert task.output["links"][0]["url"].endswith("/teams/climate/onboarding")
    assert of_alice() == []


@pytest.mark.usefixtures("directory")
def test_a_team_comes_on_board_with_its_first_gpus(real: RealBackstage) -> None:
    factories.cost_centre("CC-9")
    until = f"{timezone.now() + timedelta(days=2):%Y-%m-%d}"
    asked = {"gpus": 1, "flavor": "a100", "purpose": "training", "until": until}
    task = real.run("bring-team-on-board", newcomers(**asked))
    assert task.status == "completed", task.log
    [made] = of_alice()
    assert (made.state, made.gpus, made.team.slug) == ("approved", 1, "climate")
    assert made.tenancy is not None
    assert made.tenancy.namespace in task.output["text"][0]["content"]


@pytest.mark.usefixtures("directory")
def test_a_group_that_has_a_team_already_is_refused_in_the_log(
    real: RealBackstage, here: World
) -> None:
    factories.team("Weather", entra_group=CLIMATE)
    task = real.run("bring-team-on-board", newcomers())
    assert task.status == "failed"
    assert "This group has a team already. Ask its members." in task.log


def test_what_alice_is_told_is_one_line_of_her_notifications(
    real: RealBackstage, alice: User, settings: Settings
) -> None:
    settings.ENV = settings.ENV.model_copy(
        update={"backstage_notices_token": SecretStr(NOTICES_TOKEN)}
    )
    directory.connection.cache_clear()
    now = timezone.now()
    for title in ("Request 17 waits", "Request 17 was approved"):
        with transaction.atomic():
            tell(
                NoticeKind.REQUEST_DECIDED,
                to=[alice],
                subject=("request", 17),
                link="/requests/17/",
                message=Message(title, "Vision holds 2 A100 until Friday."),
                now=now,
            )
        deliver_due(now=lambda: now, outside=outside())
    [line] = real.notifications()
    assert line["payload"] == {
        "icon": None,
        "title": "Request 17 was approved",
        "description": "Vision holds 2 A100 until Friday.",
        "link": f"{settings.PUBLIC_URL}/requests/17/",
        "topic": "request_decided",
        "scope": "request-17",
        "severity": "normal",
    }
    assert line["origin"] == "quartermaster"
    assert line["read"] is None


def test_every_action_is_a_tool(real: RealBackstage) -> None:
    steps = {name for name in real.actions() if name.startswith("quartermaster:")}
    tools = {tool["name"] for tool in real.tool("tools/list")["tools"]}
    assert tools == {name.replace(":", ".") for name in steps}
    assert "quartermaster.create-request" in tools


@pytest.mark.parametrize(("gpus", "outcome"), [(1, "automatic"), (32, "people")])
def test_a_tool_says_beforehand_what_will_be_decided(
    real: RealBackstage, gpus: int, outcome: str
) -> None:
    given = {
        "team": "vision",
        "flavor": "training-eastus/a100",
        "gpus": gpus,
        "purpose": "training",
        "until": (timezone.now() + timedelta(days=2)).isoformat(),
    }
    name = "quartermaster.preview-request"
    told = real.tool("tools/call", name=name, arguments=given)
    assert told["structuredContent"]["answer"]["outcome"] == outcome
    assert of_alice() == []


def test_a_tool_says_why_it_was_refused(real: RealBackstage) -> None:
    told = real.tool(
        "tools/call", name="quartermaster.show-request", arguments={"request": 1}
    )
    assert told["isError"]
    assert told["content"][0]["text"].startswith("NotFoundError: There is no such")


def test_a_tool_without_arguments_is_called(real: RealBackstage) -> None:
    told = real.tool("tools/call", name="quartermaster.who-am-i")
    assert told["structuredContent"]["name"] == "Alice Moreau"


def test_what_the_teams_hold_is_in_the_catalog(
    real: RealBackstage, here: World
) -> None:
    name = f"gpu-allocation-{here.own.allocation.pk}"
    wait_until(lambda: real.entity("resource", name) is not None, what="the allocation")
    held = real.entity("resource", name)
    assert held["spec"]["system"] == "system:default/gpu-team-vision"


def test_its_own_tests_pass() -> None:
    install()
    done = subprocess.run(
        ["npm", "test"], cwd=PACKAGE, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
