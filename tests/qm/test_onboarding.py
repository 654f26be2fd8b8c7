"""Bringing a team on board: what is told before, what is chosen for it, and that it is sent once."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Team, User
from sandbox.world import group_id, person_id
from tests import factories
from tests.qm.asked import IMPOSSIBLE, PLAN, WAITING
from tests.qm.conftest import Signed, Terminal
from tests.qm.misbehaving import CUT, Answer, Misbehaving, problem
from tests.sandbox.entra.running import Running

GROUP = "00000000-0000-4000-9000-000000000009"
ONBOARD = ("onboard", "Climate", "--cost-centre", "CC-9")
PREVIEW, SEND = "POST teams/new/preview/", "POST teams/"
FOLLOW = "GET teams/climate/onboarding/"
BODY = {
    "name": "Climate",
    "entra_group": GROUP,
    "cost_centre": "CC-9",
    "project": "main",
    "environment": "dev",
    "cluster": "training",
}
THERE = {"kind": "Namespace", "name": "qm-climate-main-1", "state": "true"}
SEEN = {
    "namespace": "qm-climate-main-1",
    "is_settled": False,
    "explanation": "",
    "objects": [THERE, {**THERE, "kind": "LocalQueue", "state": "waiting"}],
}
MADE: dict[str, Any] = {
    "team": {"slug": "climate", "name": "Climate"},
    "tenancy": SEEN,
    "request": None,
}
PLANNED = {
    "slug": "climate",
    "namespace": "qm-climate-main-1",
    "entra_group_name": "climate-team",
    "members": 3,
    "sentences": ["Nobody has confirmed CC-9 yet."],
    "objects": [{"kind": "Namespace", "name": "qm-climate-main-1", "what": "Space"}],
    "start": None,
}


def group(name: str = "climate-team", reason: str = "") -> dict[str, Any]:
    """A line of the groups that somebody may bring."""
    return {
        "value": GROUP,
        "label": name,
        "description": "",
        "disabled": bool(reason),
        "reason": reason,
    }


def cluster(name: str, **fields: Any) -> dict[str, Any]:
    """A line of the fleet."""
    usual = {"title": name.title(), "purpose": "training", "enabled": True}
    return {"name": name, "dedicated_to": None, **usual, **fields}


def page(*rows: dict[str, Any]) -> dict[str, Any]:
    """A list in one page."""
    return {"results": list(rows), "next": None, "previous": None}


@pytest.fixture
def portal(server: Misbehaving) -> Misbehaving:
    """A portal with one cluster that takes teams and one kind of GPU, whose caller may bring one group."""
    server.says("GET directory/groups/", {"results": [group()]})
    server.says(
        "GET clusters/", page(cluster("training"), cluster("old", enabled=False))
    )
    kind = {"product": "A100", "free": 5, "gpus_total": 24, "dedicated_to": None}
    server.says("GET flavors/", page({"name": "a100", "is_offered": True, **kind}))
    server.says(PREVIEW, PLANNED)
    server.says(SEND, Answer(201, MADE))
    return server


def test_it_tells_what_it_would_make_then_sends_that_and_prints_the_short_name(
    portal: Misbehaving, terminal: Terminal
) -> None:
    done = terminal(*ONBOARD)

    assert (done.exit_code, done.stdout) == (0, "climate\n"), done.stderr
    assert " ".join(done.stderr.split()) == (
        "team Climate, climate in addresses and on clusters group climate-team, 3 in it "
        "namespace qm-climate-main-1 on training, for dev made 1 object "
        "mind Nobody has confirmed CC-9 yet. "
        f"Sent: {portal.url}/teams/climate/onboarding"
    )
    [preview], [sent] = portal.sent(PREVIEW), portal.sent(SEND)
    assert preview.body == sent.body == BODY
    assert "Idempotency-Key" in sent.headers


def test_first_gpus_are_judged_before_they_are_asked_for(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.answers[PREVIEW] = [Answer(body={**PLANNED, "start": PLAN})]
    gpus = ("--gpus", "2", "--until", "2026-12-05T18:00", "--reason", "The review.")

    done = terminal(*ONBOARD, *gpus, "--dry-run")

    assert done.exit_code == 0, done.stderr
    said = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "asks for 2 × a100" in said
    assert "answer Automatic. Yours in about 5 seconds." in said
    [preview] = portal.sent(PREVIEW)
    assert preview.body["start"] == {
        "flavor": "a100",
        "gpus": 2,
        "until": "2026-12-05T18:00:00Z",
        "purpose": "training",
        "reason": "The review.",
    }
    assert portal.sent(SEND) == []


def test_first_gpus_that_cannot_be_are_not_sent(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.answers[PREVIEW] = [Answer(body={**PLANNED, "start": IMPOSSIBLE})]

    done = terminal(*ONBOARD, "--gpus", "2", "--for", "3d")

    assert done.exit_code == 3
    assert "It is not possible as it stands: nothing is sent." in done.stderr
    assert portal.sent(SEND) == []


def test_what_people_decide_is_told_once_it_is_sent(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.answers[PREVIEW] = [Answer(body={**PLANNED, "start": PLAN})]
    portal.answers[SEND] = [Answer(201, {**MADE, "request": WAITING})]

    done = terminal(*ONBOARD, "--gpus", "2", "--for", "3d")

    assert f"Request {WAITING['id']}: " in done.stderr


def test_it_waits_until_the_namespace_is_there_and_says_what_stands_in_its_way(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    stuck = {**MADE, "tenancy": {**SEEN, "explanation": "Kueue does not answer."}}
    portal.says(FOLLOW, stuck, {**MADE, "tenancy": {**SEEN, "is_settled": True}})

    done = terminal(*ONBOARD, "--wait")

    assert (done.exit_code, done.stdout) == (0, "climate\n"), done.stderr
    assert "1 of 2 objects are there. Kueue does not answer." in done.stderr
    assert done.stderr.endswith("qm-climate-main-1 is there.\n")
    assert len(pauses) == 2


def test_an_answer_that_is_lost_is_sent_again_under_one_key(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    portal.answers[SEND] = [CUT, Answer(201, MADE)]

    assert terminal(*ONBOARD).exit_code == 0
    keys = {one.headers["Idempotency-Key"] for one in portal.sent(SEND)}
    assert len(keys) == 1


def test_who_does_not_hear_the_answer_is_told_how_to_send_the_same_again(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    portal.answers[PREVIEW] = [Answer(body={**PLANNED, "start": PLAN})]
    portal.answers[SEND] = [CUT]

    done = terminal(*ONBOARD, "--gpus", "1", "--for", "3d", "--key", "mine")

    assert done.exit_code not in (0, 3)
    assert "without a second team, add: --key mine --until 20" in done.stderr


@pytest.mark.parametrize(
    ("given", "found", "words"),
    [
        ((), [], "You are in no group that has no team yet."),
        ((), [group(), group("nlp-team")], "Choose a group with --group:"),
        (("--group", "climat"), [], "No group's name begins with climat."),
        (("--group", "climat"), [group()], "climate-team"),
    ],
    ids=["none", "several", "unknown", "beginning"],
)
def test_a_group_that_is_not_clear_is_asked_for_with_those_that_there_are(
    portal: Misbehaving,
    terminal: Terminal,
    given: tuple[str, ...],
    found: list[dict[str, Any]],
    words: str,
) -> None:
    portal.answers["GET directory/groups/"] = [Answer(body={"results": found})]
    done = terminal(*ONBOARD, *given)
    assert done.exit_code != 0
    assert words in done.stderr
    assert portal.sent(PREVIEW) == []


def test_a_group_that_may_not_be_brought_is_refused_by_the_portal_with_its_reason(
    portal: Misbehaving, terminal: Terminal
) -> None:
    taken = group(reason="It is Weather’s already.")
    portal.answers["GET directory/groups/"] = [Answer(body={"results": [taken]})]
    said = ("/entra_group", "This group has a team already.")
    refusal = problem(409, "group_taken", "", said)
    portal.answers[PREVIEW] = [refusal]
    done = terminal(*ONBOARD, "--group", "Climate-Team")
    assert done.exit_code == 3
    assert "--group: This group has a team already." in done.stderr


@pytest.mark.parametrize(
    ("pointer", "option"),
    [
        ("/name", "NAME"),
        ("/cost_centre", "--cost-centre"),
        ("/project", "--project"),
        ("/start/until", "--until"),
    ],
)
def test_what_is_refused_is_named_as_it_was_given(
    portal: Misbehaving, terminal: Terminal, pointer: str, option: str
) -> None:
    portal.answers[PREVIEW] = [problem(422, "invalid", "", (pointer, "Not so."))]
    assert f"{option}: Not so." in terminal(*ONBOARD).stderr


@pytest.mark.parametrize(
    ("call", "rows", "words"),
    [
        ("clusters", [], "No cluster takes teams now."),
        (
            "clusters",
            [cluster("dev"), cluster("training")],
            "Choose a cluster with --cluster:",
        ),
        ("flavors", [], "training offers no GPUs now."),
    ],
    ids=["no cluster", "several clusters", "no GPUs"],
)
def test_what_is_not_clear_is_asked_for_or_said_not_to_be_there(
    portal: Misbehaving,
    terminal: Terminal,
    call: str,
    rows: list[dict[str, Any]],
    words: str,
) -> None:
    portal.answers[f"GET {call}/"] = [Answer(body=page(*rows))]
    done = terminal(*ONBOARD, "--gpus", "1", "--for", "3d")
    assert done.exit_code != 0
    assert words in done.stderr
    assert portal.sent(PREVIEW) == []


@pytest.mark.parametrize("option", ["--flavor", "--for", "--until"])
def test_what_is_about_gpus_needs_their_number(
    portal: Misbehaving, terminal: Terminal, option: str
) -> None:
    done = terminal(*ONBOARD, option, "a100")
    assert done.exit_code == 2
    assert f"{option} is about GPUs: say how many with --gpus." in done.stderr
    assert portal.calls == []


def test_groups_are_listed_with_why_not_the_others(
    portal: Misbehaving, terminal: Terminal
) -> None:
    other = group("nlp-team", "You are not a member of it.")
    portal.answers["GET directory/groups/"] = [
        Answer(body={"results": [group(), other]})
    ]
    lines = [" ".join(line.split()) for line in terminal("groups").stdout.splitlines()]
    assert lines[1:] == [
        f"climate-team {GROUP} free",
        f"nlp-team {GROUP} You are not a member of it.",
    ]
    assert terminal.json("groups") == {"results": [group(), other]}


def test_a_dry_run_prints_the_portals_answer(
    portal: Misbehaving, terminal: Terminal
) -> None:
    assert terminal.json(*ONBOARD, "--dry-run") == PLANNED


@pytest.fixture
def ben(directory: Running) -> User:
    """Somebody of the climate team's group."""
    return factories.person("Ben Ruiz", oid=person_id(2), groups=[group_id(9)])


@pytest.mark.slow
def test_a_team_comes_on_board_from_a_terminal(signed: Signed, ben: User) -> None:
    terminal = signed.of(ben)
    where = ("--group", "climate-team", "--cluster", signed.watched.cluster.name)
    until = (timezone.now() + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    gpus = ("--gpus", "1", "--until", until)
    factories.cost_centre("CC-9")

    dry = terminal(*ONBOARD, *where, *gpus, "--dry-run")
    assert dry.exit_code == 0, dry.stderr
    assert not Team.objects.filter(slug="climate").exists()

    made = terminal(*ONBOARD, *where, *gpus, "--key", "mine", "--json")
    assert made.exit_code == 0, made.stderr
    told = json.loads(made.stdout)
    assert told["request"]["state"] == "approved"
    assert told["tenancy"]["namespace"] in dry.stdout
    # Sent again, it is the same team: the preview alone would refuse it, because its name is taken by now.
    again = terminal(*ONBOARD, *where, *gpus, "--key", "mine")
    assert (again.exit_code, again.stdout) == (0, "climate\n"), again.stderr
