"""Asking for GPUs and for more time: what is told before, what is sent, and that nothing is sent twice."""

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from qm import asking, moments
from qm.endings import Ended
from tests.qm.asked import (
    ENDED,
    GRANTED,
    HELD,
    IMPOSSIBLE,
    OPTIONS,
    PEOPLE,
    PLAN,
    SETTING_UP,
    TEAM,
    WAITING,
)
from tests.qm.conftest import Terminal
from tests.qm.in_a_terminal import in_a_terminal
from tests.qm.misbehaving import CUT, Answer, Misbehaving, problem

ASK = ("ask", "--gpus", "1", "--until", "2026-12-05T18:00")
BODY = {
    "team": "vision",
    "flavor": "training/a100",
    "gpus": 1,
    "purpose": "training",
    "until": "2026-12-05T18:00:00Z",
}
PREVIEW, SEND = "POST requests/preview/", "POST requests/"
RENEW = "POST requests/17/renew/"


@pytest.fixture
def portal(server: Misbehaving) -> Misbehaving:
    """A portal whose caller is in one team, which may ask for one kind of GPU; what is asked for is automatic."""
    server.says("GET me/", {"oid": "1", "teams": [TEAM]})
    server.says("GET options/flavors/", {"results": OPTIONS})
    server.says(PREVIEW, PLAN)
    server.says(SEND, Answer(201, SETTING_UP))
    server.says("GET requests/17/", GRANTED)
    server.says(f"{RENEW}preview/", PLAN)
    server.says(RENEW, Answer(201, {**GRANTED, "id": 18, "renews": 17}))
    return server


def test_it_tells_what_would_be_said_then_sends_that_and_prints_the_number(
    portal: Misbehaving, terminal: Terminal
) -> None:
    done = terminal(*ASK)

    assert (done.exit_code, done.stdout) == (0, "17\n"), done.stderr
    told = " ".join(done.stderr.split())
    assert told == (
        "ask 1 × training/a100 for vision until 2026-12-05 18:00 UTC "
        "answer Automatic. Yours in about 5 seconds. because Every rule of policy 3 holds. "
        "cost 264.24 USD in all, 88.08 USD a day: 1 × $3.67 per GPU-hour "
        "budget 39735.76 USD of 40000.00 USD left in 2026-11 with it "
        "in its namespace 2 GPUs without it, 3 with it then The quota goes up within seconds. "
        f"Sent: {portal.url}/requests/17 Request 17: Setting up on training. Usually a few seconds."
    )
    [preview], [sent] = portal.sent(PREVIEW), portal.sent(SEND)
    assert preview.body == sent.body == BODY
    assert "Idempotency-Key" in sent.headers
    assert "Idempotency-Key" not in preview.headers


def test_a_dry_run_tells_who_decides_and_why_and_sends_nothing(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.answers[PREVIEW] = [Answer(body=PEOPLE)]

    done = terminal(*ASK, "--from", "2026-12-01", "--reason", "A review.", "--dry-run")

    assert done.exit_code == 0, done.stderr
    said = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "from 2026-12-01 00:00 UTC" in said
    assert "answer Platform leads, then managers decide." in said
    assert (
        "who decides platform leads within 24 h, then 2 of the managers within 48 h; it usually takes 5 h"
        in said
    )
    assert said[said.index("because 12 GPUs: people decide above 2") + 1] == (
        "It counts with 2 of last week."
    )
    assert "automatic Automatic for 2." in said
    assert "all free from 2026-12-01 10:00 UTC" in said
    assert "Nobody is known as managers" in done.stderr
    assert "has not read yet who platform leads are" in done.stderr
    assert portal.sent(SEND) == []
    [preview] = portal.sent(PREVIEW)
    assert preview.body == {
        **BODY,
        "reason": "A review.",
        "starts_at": "2026-12-01T00:00:00Z",
    }
    assert terminal.json(*ASK, "--dry-run") == PEOPLE


def test_what_is_impossible_is_told_with_its_reason_and_not_sent(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.answers[PREVIEW] = [Answer(body=IMPOSSIBLE)]

    for more in ((), ("--dry-run",)):
        done = terminal(*ASK, *more)
        assert done.exit_code == 3
        assert (
            "because           the cluster has 24: people decide above 2\n"
            in done.output
        )
        assert "1,000 GPUs" not in done.output
        assert "who decides" not in done.output
        assert done.stderr.endswith(
            "It is not possible as it stands: nothing is sent.\n"
        )
    assert portal.sent(SEND) == []


def test_it_is_sent_under_one_key_until_it_is_answered(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    portal.answers[SEND] = [
        problem(503, "database_away", "Not possible just now."),
        CUT,
        Answer(201, SETTING_UP),
    ]

    done = terminal(*ASK)

    assert (done.exit_code, done.stdout) == (0, "17\n"), done.stderr
    sent = portal.sent(SEND)
    assert len(sent) == 3
    assert len({call.headers["Idempotency-Key"] for call in sent}) == 1


@pytest.mark.parametrize(
    ("typed", "call", "same_end"),
    [
        (ASK, SEND, ""),
        (("ask", "--gpus", "1", "--for", "3d"), SEND, " --until {} instead of --for"),
        (("renew", "17"), RENEW, " --until 2026-12-09T10:00:00Z"),
        (
            ("renew", "17", "--for", "1d"),
            RENEW,
            " --until 2026-12-03T10:00:00Z instead of --for",
        ),
        (("renew", "17", "--until", "2026-12-05"), RENEW, ""),
    ],
)
def test_whoever_hears_nothing_is_told_how_to_send_the_same_again(
    portal: Misbehaving,
    terminal: Terminal,
    pauses: list[float],
    typed: tuple[str, ...],
    call: str,
    same_end: str,
) -> None:
    portal.answers[call] = [CUT]

    done = terminal(*typed, "--key", "mine")

    assert (done.exit_code, done.stdout) == (5, "")
    until = portal.sent(call)[0].body["until"]
    assert done.stderr.endswith(
        "It may have been sent. To send it again without a second request, add: --key mine"
        f"{same_end.format(until)}\n"
    )


def test_under_a_key_that_came_before_it_is_sent_whatever_would_be_said_now(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.answers[PREVIEW] = [
        Answer(body=IMPOSSIBLE),
        problem(409, "not_held", "These GPUs are not held any more."),
    ]
    for number in (1, 2):
        done = terminal(*ASK, "--key", "mine")
        assert (done.exit_code, done.stdout) == (0, "17\n"), done.stderr
        assert len(portal.sent(SEND)) == number
    assert terminal(*ASK, "--key", "mine", "--dry-run").exit_code == 3
    assert terminal(*ASK).exit_code == 3
    assert len(portal.sent(SEND)) == 2


def test_a_renewal_that_was_granted_meanwhile_is_answered_again_under_its_key(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.answers["GET requests/17/"] = [Answer(body=ENDED)]
    portal.answers[f"{RENEW}preview/"] = [problem(409, "not_held", "Not any more.")]
    again = ("renew", "17", "--until", "2026-12-09T10:00:00Z")
    done = terminal(*again, "--key", "mine")
    assert (done.exit_code, done.stdout) == (0, "18\n"), done.stderr
    assert (
        terminal(*again).exit_code
        == terminal("renew", "17", "--key", "x").exit_code
        == 3
    )
    assert [one.headers["Idempotency-Key"] for one in portal.sent(RENEW)] == ["mine"]


def test_a_refusal_names_the_option_at_fault(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.answers[PREVIEW] = [
        problem(
            422,
            "not_taken",
            "Look at the fields named in errors.",
            ("/until", "Too late."),
            ("/starts_at", "Too early."),
            ("/namespace", "Name one."),
        )
    ]
    done = terminal(*ASK)
    assert (done.exit_code, done.stderr) == (
        3,
        "--until: Too late.\n--from: Too early.\n--namespace: Name one.\n",
    )
    assert portal.sent(SEND) == []


def test_with_wait_it_returns_once_the_gpus_are_there(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    portal.answers["GET requests/17/"] = [Answer(body=SETTING_UP), Answer(body=GRANTED)]

    done = terminal(*ASK, "--wait", "--json")

    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == GRANTED
    assert done.stderr.splitlines()[-2:] == [
        "Request 17: Setting up on training. Usually a few seconds.",
        "Request 17: held.",
    ]
    assert len(pauses) == 2


def test_a_renewal_adds_a_week_to_the_present_end_unless_told_otherwise(
    portal: Misbehaving, terminal: Terminal
) -> None:
    done = terminal("renew", "17", "--reason", "One epoch more.")
    assert (done.exit_code, done.stdout) == (0, "18\n"), done.stderr
    assert "renewal           2 × A100, of request 17\n" in done.stderr
    assert "2026-12-09 10:00 UTC; 2026-12-02 10:00 UTC as it is" in done.stderr
    terminal("renew", "17", "--for", "12h")
    terminal("renew", "17", "--until", "2026-12-04", "--dry-run")

    assert [call.body for call in portal.sent(RENEW)] == [
        {"until": "2026-12-09T10:00:00Z", "reason": "One epoch more."},
        {"until": "2026-12-02T22:00:00Z"},
    ]
    assert portal.sent(f"{RENEW}preview/")[-1].body == {"until": "2026-12-05T00:00:00Z"}


def test_what_is_not_held_is_not_renewed(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.answers["GET requests/17/"] = [Answer(body=WAITING)]
    done = terminal("renew", "17")
    assert (done.exit_code, done.stderr) == (
        3,
        "Nothing is held under request 17, which is waiting. It can be taken back: qm withdraw 17\n",
    )
    assert portal.sent(RENEW) == []


END_OF_INPUT = b"\x04"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "code", "calls"),
    [(b"n\n", 1, 0), (END_OF_INPUT, 130, 0), (b"y\n", 0, 1)],
)
def test_in_a_terminal_nothing_is_sent_without_a_yes(
    portal: Misbehaving, tmp_path: Path, answer: bytes, code: int, calls: int
) -> None:
    ended, shown = in_a_terminal(portal, tmp_path, *ASK, answer=answer)
    assert (ended, len(portal.sent(SEND))) == (code, calls), shown
    assert "Ask for it? [y/N]:" in shown
    assert ("Nothing is sent." in shown) is (calls == 0)


def test_in_a_terminal_yes_can_be_said_before(
    portal: Misbehaving, tmp_path: Path
) -> None:
    ended, shown = in_a_terminal(portal, tmp_path, *ASK, "--yes", answer=b"")
    assert (ended, len(portal.sent(SEND))) == (0, 1), shown
    assert "[y/N]" not in shown


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (("--gpus", "1"), "Say until when: --for 3d, or --until 2026-12-05."),
        (
            ("--gpus", "1", "--for", "3"),
            "--for takes a time such as 8h, 3d, 2w or 1d12h, not '3'.",
        ),
        (("--gpus", "1", "--for", "0d"), "not '0d'."),
        (
            ("--gpus", "1", "--for", "1d", "--until", "2026-12-05"),
            "Give --for or --until, not both.",
        ),
        (
            ("--gpus", "1", "--until", "Friday"),
            "--until takes a day such as 2026-12-05",
        ),
        (("--gpus", "1", "--until", "2026-02-30"), "not '2026-02-30'."),
        (("--gpus", "1", "--for", "1d", "--from", "now"), "--from takes a day"),
        (
            ("--gpus", "0", "--for", "1d"),
            "Write a whole number of at least 1, not '0'.",
        ),
        (("--for", "1d"), "Missing option '--gpus'"),
        (
            ("--gpus", "1", "--for", "1d", "--project", "a", "--namespace", "b"),
            "not both.",
        ),
        (
            ("--gpus", "1", "--for", "1d", "--key", "a b"),
            "A key is made of visible ASCII",
        ),
    ],
)
def test_what_makes_no_sense_is_said_before_the_portal_is_asked(
    portal: Misbehaving, terminal: Terminal, typed: tuple[str, ...], said: str
) -> None:
    done = terminal("ask", *typed)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert portal.calls == []


def test_a_team_that_there_is_not_is_said_with_ones_own(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.answers["GET options/flavors/"] = [problem(404, "not_found", "No.")]
    done = terminal(*ASK, "--team", "speech")
    assert (done.exit_code, done.stderr) == (
        6,
        "There is no team speech that you may see. Your teams: vision.\n",
    )


def test_a_project_is_asked_for_in_its_namespace_on_the_cluster_of_the_gpus(
    portal: Misbehaving, terminal: Terminal
) -> None:
    elsewhere = {"namespace": "x", "environment": "dev", "cluster": "inference"}
    here = {"namespace": "qm-vision-main", "environment": "dev", "cluster": "training"}
    project = {"slug": "main", "namespaces": [elsewhere, here]}
    portal.says("GET teams/vision/projects/", {"results": [project]})
    assert terminal(*ASK, "--project", "main").exit_code == 0
    assert portal.sent(SEND)[0].body == {**BODY, "namespace": "qm-vision-main"}


FEB = datetime(2026, 2, 3, 4, 5, tzinfo=UTC)
SPACES = [
    {"namespace": "a", "environment": "dev", "cluster": "training"},
    {"namespace": "b", "environment": "test", "cluster": "training"},
]


@pytest.mark.parametrize(
    ("choose", "said"),
    [
        (lambda: asking.team_of([], ""), "You are in no team."),
        (
            lambda: asking.team_of([TEAM, {"slug": "b"}], ""),
            "Choose a team with --team: vision, b.",
        ),
        (
            lambda: asking.flavor_of([], "", team="vision"),
            "Team vision can ask for no GPUs yet",
        ),
        (
            lambda: asking.flavor_of(OPTIONS, "h100", team="vision"),
            "no kind of GPU h100:\n  training/a100  A100 · $3.67 per GPU-hour\n  training/t4  This kind of GPU is not",
        ),
        (
            lambda: asking.flavor_of(
                [*OPTIONS, {**OPTIONS[0], "value": "dev/a100"}], "a100", team="vision"
            ),
            "Choose a kind of GPU with --flavor:\n  training/a100  ",
        ),
        (
            lambda: asking.namespace_of([], "main", cluster="training", team="vision"),
            "Its projects: none.",
        ),
        (
            lambda: asking.namespace_of(
                [{"slug": "main", "namespaces": []}],
                "main",
                cluster="training",
                team="vision",
            ),
            "Project main has no namespace on training.",
        ),
        (
            lambda: asking.namespace_of(
                [{"slug": "main", "namespaces": SPACES}],
                "main",
                cluster="training",
                team="vision",
            ),
            "Choose one with --namespace in the place of --project: a (dev), b (test).",
        ),
    ],
)
def test_what_is_to_be_chosen_is_named_with_its_choices(choose: Any, said: str) -> None:
    with pytest.raises(Ended) as refused:
        choose()
    assert said in refused.value.message


def test_a_kind_of_gpu_is_named_alone_or_with_its_cluster_or_not_at_all() -> None:
    for name in ("", "a100", "training/a100"):
        assert asking.flavor_of(OPTIONS, name, team="vision") == "training/a100"
    # The portal says why not.
    assert asking.flavor_of(OPTIONS, "t4", team="vision") == "training/t4"


@pytest.mark.parametrize(
    ("text", "is_end", "found"),
    [
        ("2026-12-05", False, "2026-12-04T23:00:00Z"),
        ("2026-12-05", True, "2026-12-05T23:00:00Z"),
        ("2026-07-05", True, "2026-07-05T22:00:00Z"),
        ("2026-12-05T18:00", True, "2026-12-05T17:00:00Z"),
        ("2026-12-05 18:00", True, "2026-12-05T17:00:00Z"),
        ("2026-12-05T18:00:30Z", True, "2026-12-05T18:00:30Z"),
        ("2026-12-05t18:00z", True, "2026-12-05T18:00:00Z"),
        ("2026-12-05T18:00+02:00", True, "2026-12-05T16:00:00Z"),
    ],
)
def test_moments_are_local_unless_they_name_a_zone(
    monkeypatch: pytest.MonkeyPatch, text: str, is_end: bool, found: str
) -> None:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    try:
        read = moments.moment(text, of="--until", is_end=is_end)
        assert moments.written(read) == found
    finally:
        monkeypatch.undo()
        time.tzset()


def test_lengths_add_up_and_the_end_counts_from_the_beginning() -> None:
    assert moments.length("1w2d3h4m", of="--for") == timedelta(
        days=9, hours=3, minutes=4
    )
    given = {"begins": "", "length": "3d", "until": ""}
    assert asking.period(given, now=FEB) == {"until": "2026-02-06T04:05:00Z"}
    later = {**given, "begins": "2026-03-01T00:00Z"}
    assert asking.period(later, now=FEB) == {
        "starts_at": "2026-03-01T00:00:00Z",
        "until": "2026-03-04T00:00:00Z",
    }
    assert HELD["until"] == moments.written(moments.read(HELD["until"]))
