"""Against a server that misbehaves: nothing is done twice, no line of a log is lost or doubled, and no token strays."""

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from click.testing import Result

from qm import following, workers
from qm.calls import Portal
from qm.configuration import Access
from tests.qm.conftest import Terminal
from tests.qm.misbehaving import CUT, HELD, Answer, Call, Misbehaving, problem

TEAM = {"slug": "vision", "name": "Vision"}
POOL = {
    "flavor": "a100",
    "product": "A100",
    "device": "A100",
    "gpus": 2,
    "borrow": 0,
    "per_node": 8,
    "usd_per_gpu_hour": "3.2000",
    "is_spot": False,
    "is_slice": False,
    "memory": 80,
    "levels": [],
    "cuda": "",
}
PLACE = {
    "tenancy": 5,
    "team": TEAM,
    "project": "main",
    "cluster": "training",
    "namespace": "vision",
    "follows_git": False,
    "flavors": [POOL],
    "priorities": ["exploratory"],
    "volumes": ["datasets"],
    "templates": [
        {"slug": "single-node", "missing": ""},
        {"slug": "gang", "missing": ""},
    ],
}
NAMES = ("image", "program", "gpus", "minutes")
SINGLE: dict[str, Any] = {
    "slug": "single-node",
    "title": "Single node",
    "help": "One node.",
    "kind": "Job.batch/v1",
    "shape": "single-node",
    "accepts_files": True,
    "gpu_memory": 0,
    "parameters": [
        {
            "name": each,
            "type": "count",
            "default": None,
            "minimum": 1,
            "maximum": 10_080,
        }
        for each in NAMES
    ],
}
GANG = {
    **SINGLE,
    "slug": "gang",
    "shape": "gang",
    "parameters": [*SINGLE["parameters"], {"name": "nodes", "type": "count"}],
}
WHY = {
    "what": "It waits.",
    "line": "Number 2 of 2.",
    "when": "",
    "do": "Wait.",
    "since": "2026-11-23T10:00:00Z",
}
POD = {
    "name": "bert-0",
    "number": 0,
    "word": "Running",
    "node": "a100-0",
    "restarts": 0,
    "started_at": "2026-11-23T10:00:00Z",
    "ended_as": "",
}
RUN: dict[str, Any] = {
    "id": 7,
    "name": "bert-1a2b3c4d",
    "state": "running",
    "is_over": False,
    "message": "",
    "advice": "",
    "stop_asked_at": None,
    "ran_seconds": 3_725,
    "cost": "6.63",
    "why": None,
    "pods": [POD],
    "kept_logs": [],
}
OVER = {**RUN, "state": "finished", "is_over": True}
TRAIN = ("train", "--image", "train:1", "--gpus", "1")
LOG = "GET runs/7/logs/"


def at(number: int) -> str:
    return f"2026-11-23T10:00:{number:02d}.000000001Z.0"


def written(*lines: str, first: int = 1) -> str:
    """Lines as the portal streams them."""
    return "".join(
        f"id: {at(n)}\ndata: {line}\n\n" for n, line in enumerate(lines, start=first)
    )


END = "event: end\ndata: \n\n"


@pytest.fixture
def portal(server: Misbehaving) -> Misbehaving:
    """A portal with one place, and one run that runs."""
    server.says("GET places/", {"results": [PLACE]})
    server.says("GET templates/", {"results": [SINGLE, GANG]})
    server.says("GET runs/", {"next": None, "previous": None, "results": [RUN]})
    return server


def test_a_submission_is_repeated_under_one_key_until_it_is_answered(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    portal.says(
        "POST runs/",
        problem(503, "database_away", "Not possible just now."),
        CUT,
        problem(409, "in_flight", "A call with this key is still at work."),
        problem(429, "throttled", "Too many calls.", Retry_After="17"),
        Answer(201, RUN),
    )

    done = terminal(*TRAIN, "--", "train.py")

    assert (done.exit_code, done.stdout) == (0, "bert-1a2b3c4d\n"), done.stderr
    sent = portal.sent("POST runs/")
    assert len(sent) == 5
    assert (
        len({(one.headers["Idempotency-Key"], json.dumps(one.body)) for one in sent})
        == 1
    )
    assert pauses[0] <= pauses[1] * 2 <= pauses[2] * 4
    assert pauses[3] == 17


def test_an_answer_that_comes_too_late_is_asked_for_again_under_its_key(
    server: Misbehaving, pauses: list[float]
) -> None:
    server.says("POST runs/", HELD, Answer(201, RUN))

    made = Portal(Access(server.url, "qm_secret"), seconds=1).post(
        "runs/", {}, key="one"
    )

    assert made == RUN
    assert [one.headers["Idempotency-Key"] for one in server.sent("POST runs/")] == [
        "one",
        "one",
    ]


def test_two_submissions_have_two_keys(portal: Misbehaving, terminal: Terminal) -> None:
    portal.says("POST runs/", Answer(201, RUN))
    portal.says("POST runs/7/again/", Answer(201, RUN))
    for command in (TRAIN, TRAIN, ("again", "7")):
        portal.says("GET runs/7/", RUN)
        assert terminal(*command).exit_code == 0
    sent = [one for one in portal.calls if one.method == "POST"]
    assert len({one.headers["Idempotency-Key"] for one in sent}) == 3


def test_whoever_hears_nothing_is_told_how_to_ask_again_without_a_second_run(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    portal.says("POST runs/", CUT)

    done = terminal(*TRAIN)

    assert (done.exit_code, done.stdout) == (5, "")
    key = portal.sent("POST runs/")[0].headers["Idempotency-Key"]
    assert done.stderr.splitlines() == [
        f"The portal at {portal.url} does not answer.",
        f"It may have been submitted. To send it again without a second run, add: --key {key}",
    ]
    assert len(pauses) == 4
    portal.answers["POST runs/"] = [Answer(201, RUN)]
    assert terminal(*TRAIN, "--key", key).exit_code == 0
    assert portal.sent("POST runs/")[-1].headers["Idempotency-Key"] == key


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        pytest.param(
            problem(
                422,
                "not_taken",
                "Look.",
                ("/values/gpus", "Too many."),
                ("/title", "Too long."),
            ),
            3,
            ["--gpus: Too many.", "--name: Too long."],
            id="values",
        ),
        pytest.param(
            problem(403, "no_right", "You may not."), 3, ["You may not."], id="rights"
        ),
        pytest.param(
            problem(409, "is_leaving", "It leaves."), 3, ["It leaves."], id="conflict"
        ),
        pytest.param(
            problem(401, "not_authenticated", "No such token."),
            4,
            [
                "No such token.",
                "Make a token in the portal under Tokens, and run: qm login",
            ],
            id="token",
        ),
        pytest.param(
            problem(500, "unexpected", "It broke."),
            5,
            ["It broke.", "The number of the call is r-1."],
            id="broken",
        ),
        pytest.param(
            Answer(404, b"<html>"), 6, ["The portal answered 404."], id="a proxy's page"
        ),
        pytest.param(Answer(200, b"<html>"), 5, None, id="no portal"),
    ],
)
def test_a_refusal_is_told_in_sentences_once_and_has_its_exit_code(
    portal: Misbehaving,
    terminal: Terminal,
    answer: Answer,
    code: int,
    said: list[str] | None,
) -> None:
    portal.says("POST runs/", answer)

    done = terminal(*TRAIN)

    assert (done.exit_code, done.stdout, len(portal.sent("POST runs/"))) == (
        code,
        "",
        1,
    )
    assert said is None or done.stderr.splitlines() == said


def test_one_node_is_what_a_template_of_one_has_anyway(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.says("POST runs/", Answer(201, RUN))
    assert terminal(*TRAIN, "--nodes", "1").exit_code == 0
    [sent] = portal.sent("POST runs/")
    assert sent.body["template"] == "single-node"
    assert "nodes" not in sent.body["values"]


def test_several_nodes_choose_the_first_template_of_the_place_that_takes_them(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.says("POST runs/", Answer(201, RUN))
    assert terminal(*TRAIN, "--nodes", "4", "--time", "1d2h").exit_code == 0
    [sent] = portal.sent("POST runs/")
    assert (sent.body["template"], sent.body["flavor"], sent.body["tenancy"]) == (
        "gang",
        "a100",
        5,
    )
    assert sent.body["values"] == {
        "image": "train:1",
        "gpus": 1,
        "nodes": 4,
        "minutes": 1_560,
    }


SENT = {
    **RUN,
    "template": "single-node",
    "tenancy": 5,
    "submission": {"script": None, "repository": None, "claims": []},
}
ONE_NODE = (
    "--nodes 4: the template single-node runs on one node. On several nodes of training/vision run: gang. "
    "Choose one with --template.\n"
)


@pytest.mark.parametrize("given", [("--nodes", "4"), ("--set", "nodes=4")])
def test_several_nodes_of_a_template_of_one_are_refused_with_those_that_take_them(
    portal: Misbehaving, terminal: Terminal, given: tuple[str, ...]
) -> None:
    portal.says("GET runs/7/", SENT)
    portal.says("POST runs/7/again/", Answer(201, RUN))
    new = terminal(*TRAIN, "--template", "single-node", *given)
    again = terminal("again", "7", *given)
    assert (new.exit_code, new.stderr) == (2, ONE_NODE)
    assert (again.exit_code, again.stderr) == (2, ONE_NODE)
    unknown = terminal("again", "7", "--template", "gagn")
    assert (unknown.exit_code, unknown.stderr) == (
        6,
        "There is no template gagn. There are: single-node, gang.\n",
    )
    assert not portal.sent("POST runs/7/again/")

    assert terminal("again", "7", *given, "--template", "gang").exit_code == 0
    assert terminal("again", "7", "--nodes", "1").exit_code == 0
    assert [one.body for one in portal.sent("POST runs/7/again/")] == [
        {"template": "gang", "values": {"nodes": 4}},
        None,
    ]


def test_several_nodes_where_no_template_takes_them_are_refused_with_the_reasons(
    server: Misbehaving, terminal: Terminal
) -> None:
    lacking = [{"slug": "gang", "missing": "The cluster does not know Gang."}]
    server.says("GET places/", {"results": [{**PLACE, "templates": lacking}]})
    server.says("GET templates/", {"results": [SINGLE, GANG]})
    server.says("GET runs/7/", SENT)
    again = terminal("again", "7", "--nodes", "4")
    assert (again.exit_code, again.stderr) == (
        3,
        "No template of training/vision takes several nodes:\n  gang: The cluster does not know Gang.\n",
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--time", "soon"), "--time takes a time"),
        (("--claim", "datasets"), "--claim takes NAME:/path"),
        (("--env", "EPOCHS"), "--env takes NAME=VALUE"),
        (("--secret", "HF_TOKEN=huggingface"), "--secret takes NAME=SECRET:KEY"),
        (("--git-secret", "git-read"), "--git-secret is for the address of --git"),
        (("--set", "gpus=many"), "--gpus: 'many' is no whole number."),
        (
            ("--script", "not-there.py"),
            "--script not-there.py cannot be read: No such file or directory.\n",
        ),
        (("--key", "a – b"), "A key is made of"),
        (("--follow", "--json"), "--follow does not go with --json"),
    ],
)
def test_what_makes_no_sense_is_not_sent(
    portal: Misbehaving, terminal: Terminal, more: tuple[str, ...], said: str
) -> None:
    done = terminal(*TRAIN, *more)
    assert done.exit_code == 2
    assert said in done.stderr
    assert not portal.sent("POST runs/")


def test_a_script_that_is_no_text_is_said_in_words(
    portal: Misbehaving, terminal: Terminal, tmp_path: Path
) -> None:
    binary = tmp_path / "weights.bin"
    binary.write_bytes(b"\x80\x00")
    done = terminal(*TRAIN, "--script", str(binary))
    assert (done.exit_code, done.stderr) == (
        2,
        f"--script {binary} is no text in UTF-8.\n",
    )


def test_without_a_team_the_first_step_is_another_one(
    server: Misbehaving, terminal: Terminal
) -> None:
    server.says("GET places/", {"results": []})
    server.says("GET me/", {"teams": []}, {"teams": [TEAM]})
    assert terminal("places").stderr.startswith("Nowhere yet: you are in no team.")
    assert terminal("places").stderr.startswith(
        "Nowhere yet: your team needs a namespace"
    )
    server.says("GET templates/", {"results": [SINGLE]})
    assert terminal(*TRAIN).stderr.endswith("What is needed first says: qm places\n")


def test_a_full_name_is_asked_for_and_only_a_beginning_is_looked_for(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.says("GET runs/7/", RUN)
    assert terminal.json("show", RUN["name"])["id"] == 7
    assert [call.address for call in portal.sent("GET runs/")] == [
        f"/api/v1/runs/?name={RUN['name']}&limit=100"
    ]

    portal.calls.clear()
    portal.answers["GET runs/"].insert(
        0, Answer(body={"next": None, "previous": None, "results": []})
    )
    assert terminal.json("show", "bert")["id"] == 7
    assert [call.address for call in portal.sent("GET runs/")] == [
        "/api/v1/runs/?name=bert&limit=100",
        "/api/v1/runs/?limit=100",
    ]


@pytest.mark.parametrize("word", ["", "Fine-tune BERT", "x" * 64, "bert?team=nlp"])
def test_what_can_be_no_name_is_not_asked_for_as_one(
    portal: Misbehaving, terminal: Terminal, word: str
) -> None:
    terminal("show", word)
    assert all("name=" not in call.address for call in portal.calls)


def test_a_kind_of_gpu_that_no_place_holds_is_said_with_those_that_they_hold(
    server: Misbehaving, terminal: Terminal
) -> None:
    h100 = {**POOL, "flavor": "h100"}
    second = {**PLACE, "namespace": "vision-2", "flavors": [POOL, h100]}
    third = {**PLACE, "namespace": "vision-3", "flavors": []}
    foreign = {**third, "team": {"slug": "nlp", "name": "NLP"}, "namespace": "nlp"}
    server.says("GET places/", {"results": [PLACE, second, third, foreign]})
    server.says("GET templates/", {"results": [SINGLE]})
    held = (
        "training/vision has a100; training/vision-2 has a100, h100; "
        "training/vision-3 has none"
    )

    theirs = terminal(*TRAIN, "--team", "vision", "--flavor", "nope")
    any_team = terminal(*TRAIN, "--flavor", "nope")

    assert (theirs.exit_code, theirs.stderr) == (
        2,
        f"No place of team vision has GPUs of kind nope: {held}.\n",
    )
    assert (any_team.exit_code, any_team.stderr) == (
        2,
        f"No place of yours has GPUs of kind nope: {held}; training/nlp has none.\n",
    )
    assert not server.sent("POST runs/")


def test_a_place_that_follows_git_is_no_choice(
    server: Misbehaving, terminal: Terminal
) -> None:
    other = {**PLACE, "tenancy": 6, "namespace": "vision-2"}
    server.says(
        "GET places/",
        {"results": [{**PLACE, "follows_git": True}, other]},
        {"results": [PLACE, other]},
    )
    server.says("GET templates/", {"results": [SINGLE]})
    server.says("POST runs/", Answer(201, RUN))

    assert terminal(*TRAIN).exit_code == 0
    assert server.sent("POST runs/")[0].body["tenancy"] == 6
    several = terminal(*TRAIN)
    assert several.exit_code == 2
    assert several.stderr == (
        "Choose a place with --place: training/vision (team vision), training/vision-2 (team vision).\n"
    )


def test_a_log_that_breaks_off_loses_and_doubles_no_line(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    lines = [f"step {n} – é\x0b\x85\u2028" for n in range(1, 9)]

    def on(call: Call) -> Answer:
        """What comes behind the line that the client has, two lines and a half at a time."""
        last = call.headers.get("Last-Event-ID", "")
        done = next((n for n in range(1, 9) if at(n) == last), 0)
        rest = lines[done : done + 3]
        text = written(*rest, first=done + 1)
        is_last = done + 3 > len(lines)
        return Answer(stream=text + END if is_last else text[:-12], breaks=not is_last)

    portal.says("GET runs/7/", RUN, OVER)
    portal.says(
        LOG, on, problem(503, "database_away", "Not possible just now."), CUT, on
    )

    done = terminal("logs", "7", "-f")

    assert done.exit_code == 0, done.stderr
    assert done.stdout.split("\n") == [*lines, ""]
    assert [one.headers.get("Last-Event-ID") for one in portal.sent(LOG)][:4] == [
        None,
        at(2),
        at(2),
        at(2),
    ]
    assert done.stderr == "bert-1a2b3c4d: finished after 1 h 2 min, 6.63 USD.\n"


def test_a_stream_that_ends_in_its_time_is_asked_for_again_after_the_pause_it_asked_for(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    portal.says("GET runs/7/", RUN, OVER)
    portal.says(
        LOG,
        Answer(
            stream="retry: 15000\n\nevent: refused\ndata: You follow 10 logs already.\n\n"
        ),
        Answer(
            stream="retry: 1000\n\n: still here\n\nevent: missed\ndata: 12\n\n"
            + written("a")
        ),
        Answer(stream=written("b", first=2) + "event: end\ndata: The pod is gone.\n\n"),
    )

    done = terminal("logs", "7", "-f")

    assert (done.exit_code, done.stdout) == (0, "a\nb\n")
    assert pauses == [15, 1]
    assert done.stderr.splitlines()[:3] == [
        "You follow 10 logs already.",
        "(12 lines are left out: they came too fast.)",
        "The pod is gone.",
    ]


def test_one_line_tells_where_a_run_is_while_it_waits_and_the_next_pod_is_read_after_a_restart(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    waits = {**RUN, "state": "waiting", "why": WHY, "pods": []}
    moved = {**waits, "why": {**WHY, "line": "Number 1 of 2."}}
    unstarted = {**POD, "word": "Starting", "started_at": None}
    failed = {**POD, "word": "Failed"}
    second = {**POD, "name": "bert-0-second", "started_at": "2026-11-23T11:00:00Z"}
    restarted = {
        **RUN,
        "pods": [failed, {**second, "word": "Starting", "started_at": None}],
    }
    portal.says(
        "GET runs/7/",
        waits,
        waits,
        moved,
        {**moved, "pods": [unstarted]},
        RUN,
        restarted,
        {**RUN, "pods": [failed, second]},
        {
            **OVER,
            "state": "failed",
            "message": "Exit code 1.",
            "pods": [failed, second],
        },
    )
    portal.says(
        LOG,
        problem(409, "log_not_started", "The pod has not started yet."),
        Answer(stream=written("first") + END),
        Answer(stream=written("second") + END),
    )
    portal.answers["GET runs/7/"].insert(5, Answer(body=RUN))

    done = terminal("logs", "7", "-f")

    assert (done.exit_code, done.stdout) == (1, "first\nsecond\n")
    assert done.stderr.splitlines() == [
        "bert-1a2b3c4d: waiting. It waits. Number 2 of 2.",
        "bert-1a2b3c4d: waiting. It waits. Number 1 of 2.",
        "bert-1a2b3c4d: running.",
        "bert-1a2b3c4d: failed after 1 h 2 min, 6.63 USD.",
        "Exit code 1.",
    ]
    assert "pod=bert-0-second" in portal.sent(LOG)[-1].address


def test_what_is_over_is_read_and_not_waited_for(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.says("GET runs/7/", OVER)
    portal.says(
        LOG, {"pod": "bert-0", "lines": [{"place": at(1), "text": "all of it"}]}
    )
    done = terminal("logs", "7", "-f")
    assert (done.exit_code, done.stdout) == (0, "all of it\n")
    assert "follow" not in portal.sent(LOG)[0].address

    portal.answers[LOG] = [
        problem(409, "log_not_started", "The pod has not started yet.")
    ]
    unstarted = {**POD, "word": "Waiting", "started_at": None}
    portal.answers["GET runs/7/"] = [
        Answer(body={**OVER, "state": "stopped", "pods": [unstarted]})
    ]
    done = terminal("logs", "7", "-f")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("The pod has not started yet.\n")

    portal.answers["GET runs/7/"] = [Answer(body={**OVER, "pods": []})]
    assert terminal("logs", "7", "-f").stderr.startswith("There is no log.\n")


def test_the_last_lines_are_followed_from_there(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.says("GET runs/7/", RUN, OVER)
    lines = [{"place": at(n), "text": f"line {n}"} for n in (4, 5)]
    portal.says(
        LOG,
        {"pod": "bert-0", "lines": lines},
        Answer(stream=written("line 6", first=6) + END),
    )

    done = terminal("logs", "7", "-f", "--tail", "2")

    assert done.stdout == "line 4\nline 5\nline 6\n"
    assert portal.sent(LOG)[1].headers["Last-Event-ID"] == at(5)


def test_a_cluster_that_does_not_answer_is_told_at_once_and_only_a_follower_waits_for_it(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    away = problem(
        503, "cluster_away", "The cluster does not answer.", Retry_After="30"
    )
    lines = {"pod": "bert-0", "lines": [{"place": at(1), "text": "line 1"}]}
    portal.says("GET runs/7/", RUN, RUN, RUN, RUN, OVER)
    portal.says(
        LOG, away, away, away, lines, Answer(stream=written("line 2", first=2) + END)
    )

    done = terminal("logs", "7")

    assert (done.exit_code, done.stdout, pauses) == (5, "", [])
    assert done.stderr.startswith("The cluster does not answer.\n")
    done = terminal("logs", "7", "-f", "--tail", "1")
    assert (done.exit_code, done.stdout) == (0, "line 1\nline 2\n")
    assert done.stderr.count("The cluster does not answer.") == 1


OF_ENTRA = "eyJhbGciOiJSUzI1NiJ9.e30.c2ln"


@pytest.mark.parametrize(
    ("token", "advice"),
    [
        pytest.param(
            OF_ENTRA,
            "A token of Entra ID lives about an hour. Get a new one as you got this one, such as by az account "
            "get-access-token, and give it as QM_TOKEN.",
            id="of Entra ID",
        ),
        pytest.param(
            "qm_1a2b3c4d_secret",
            "Make a token in the portal under Tokens, and run: qm login",
            id="of the portal",
        ),
    ],
)
@pytest.mark.parametrize("command", [("wait", "7"), ("logs", "7", "-f")])
def test_a_token_that_ends_while_a_run_is_waited_for_leaves_it_running_and_says_so(
    portal: Misbehaving,
    terminal: Terminal,
    pauses: list[float],
    command: tuple[str, ...],
    token: str,
    advice: str,
) -> None:
    ended = problem(401, "not_authenticated", "It has expired.")
    portal.says("GET runs/7/", {**RUN, "pods": []}, ended)

    done = terminal(*command, QM_TOKEN=token)

    assert done.exit_code == 4
    assert done.stderr.endswith(
        f"It has expired.\n{advice}\nbert-1a2b3c4d goes on. To wait on: qm wait 7\n"
    )
    assert len(pauses) == 1


@pytest.mark.parametrize(
    "command",
    [
        ("logs", "7", "-f"),
        ("logs", "7", "-f", "--all-workers"),
        ("wait", "7"),
        (*TRAIN, "--follow"),
    ],
)
def test_an_interruption_leaves_the_run_running_and_says_so(
    portal: Misbehaving,
    terminal: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(following, "sleep", interrupt)
    monkeypatch.setattr(workers, "sleep", interrupt)
    portal.says("GET runs/7/", {**RUN, "pods": []})
    portal.says("POST runs/", Answer(201, {**RUN, "pods": []}))

    done = terminal(*command)

    assert done.exit_code == 130
    assert done.stderr.endswith("\nbert-1a2b3c4d goes on. To end it: qm stop 7\n")
    assert not portal.sent("POST runs/7/stop/")


def test_a_portal_that_is_away_for_minutes_ends_no_wait(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    portal.says("GET runs/7/", RUN, *[CUT] * 12, OVER)
    assert terminal("wait", "7").exit_code == 0
    assert sum(pauses) > 120


LISTED = {
    **RUN,
    "gpus": 2,
    "flavor": "a100",
    "cluster": "training",
    "team": TEAM,
    "requester": {"name": "Ada"},
    "created_at": "2026-11-23T10:00:00Z",
    "started_at": "2026-11-23T11:00:00Z",
    "ended_at": None,
}
RUNS = {"code": "running", "what": "It runs.", "since": "2026-11-23T11:30:00Z"}
WAITS = {"code": "quota_taken", "what": "It waits.", "since": "2026-11-23T10:05:00Z"}
LONG = {**WAITS, "what": f"{'Its pods wait ' * 4}for a node that they fit on."}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "11-23 11:00"),
        ({"why": RUNS}, "11-23 11:30"),
        ({"state": "waiting", "why": WAITS}, "11-23 10:05  It waits."),
        (
            {"state": "waiting", "why": LONG},
            "11-23 10:05  Its pods wait Its pods wait Its pods wait Its pods wait for…",
        ),
        ({"state": "submitted", "started_at": None, "why": None}, "11-23 10:00"),
        (
            {"why": RUNS, "stop_asked_at": "2026-11-23T12:00:00Z"},
            "11-23 12:00  It is being stopped.",
        ),
        (
            {
                "state": "failed",
                "is_over": True,
                "ended_at": "2026-11-23T13:00:00Z",
                "message": "Exit code 1.",
            },
            "11-23 13:00  Exit code 1.",
        ),
    ],
)
def test_a_list_tells_since_when_and_why_in_few_words(
    portal: Misbehaving, terminal: Terminal, change: dict[str, Any], said: str
) -> None:
    rows = {"next": None, "previous": None, "results": [{**LISTED, **change}]}
    portal.answers["GET runs/"] = [Answer(body=rows)]
    assert terminal("list").stdout.splitlines()[1].endswith(f" 6.63 USD  {said}")
    assert "why=true" in portal.calls[-1].address


def test_a_list_goes_on_at_the_portal_that_one_is_signed_in_to(
    portal: Misbehaving, terminal: Terminal
) -> None:
    link = "https://elsewhere.example.com/api/v1/runs/?limit=100&cursor=abc%3D"
    portal.answers["GET runs/"] = [
        Answer(body={"next": link, "previous": None, "results": [RUN]}),
        Answer(
            body={
                "next": None,
                "previous": link,
                "results": [{**RUN, "id": 8, "name": "bart-5e6f"}],
            }
        ),
    ]
    portal.says("GET runs/8/", {**RUN, "id": 8, "name": "bart-5e6f"})

    assert terminal.json("show", "bart")["id"] == 8
    assert portal.sent("GET runs/")[1].address.endswith("&limit=100&cursor=abc%3D")


def test_a_list_has_as_many_rows_as_were_asked_for_and_goes_on_behind_them(
    portal: Misbehaving, terminal: Terminal
) -> None:
    link = "https://portal.example.com/api/v1/runs/?limit=100&cursor=abc"
    behind = "https://portal.example.com/api/v1/runs/?limit=50&cursor=def"
    portal.answers["GET runs/"] = [
        Answer(body={"next": link, "previous": None, "results": [RUN] * 100}),
        Answer(body={"next": behind, "previous": link, "results": [RUN] * 50}),
    ]
    found = terminal.json("list", "--limit", "150")
    assert (len(found["results"]), found["next"]) == (150, behind)
    first, second = (one.address for one in portal.sent("GET runs/"))
    assert "limit=100" in first
    assert second.endswith("limit=50&cursor=abc")


@pytest.mark.parametrize(
    ("location", "said"),
    [
        (
            "https://new.example.com/",
            "The portal has moved to https://new.example.com/",
        ),
        ("/sign-in?next=/requests/api/v1/runs/", "without a path"),
    ],
)
def test_the_token_follows_no_redirection(
    portal: Misbehaving, terminal: Terminal, location: str, said: str
) -> None:
    portal.answers["GET runs/"] = [Answer(302, "", {"Location": location})]
    done = terminal("list")
    assert (done.exit_code, len(portal.calls)) == (5, 1)
    assert said in done.stderr
    assert ("has moved" in done.stderr) == said.startswith("The portal has moved")


def test_the_token_is_shown_nowhere(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    portal.says(
        "GET runs/7/",
        RUN,
        problem(503, "away", "Away."),
        CUT,
        problem(500, "broken", "Broken."),
    )
    portal.says(LOG, problem(500, "broken", "Broken."))
    type_all: list[Callable[[], Result]] = [
        lambda: terminal("why", "7"),
        lambda: terminal("wait", "7"),
        lambda: terminal("logs", "7", "-f"),
        lambda: terminal(
            "login", "--url", portal.url, "--token-stdin", given="qm_secret\n"
        ),
    ]
    for typed in type_all:
        done = typed()
        assert portal.calls[-1].headers["Authorization"] == "Bearer qm_secret"
        assert "secret" not in done.output


def test_the_pods_of_a_run_are_named_with_their_numbers_where_they_have_one(
    portal: Misbehaving, terminal: Terminal
) -> None:
    alone, second = {**POD, "number": None}, {**POD, "name": "bert-1", "number": 1}
    portal.says("GET runs/7/", {**RUN, "pods": [alone]}, {**RUN, "pods": [POD, second]})
    for names in ("bert-0", "bert-0 (worker 0), bert-1 (worker 1)"):
        refused = terminal("logs", "7", "--worker", "7")
        assert (refused.exit_code, refused.stderr) == (
            6,
            f"bert-1a2b3c4d has no such pod. It has: {names}.\n",
        )


def test_of_a_run_that_is_over_it_says_that_not_every_log_is_kept(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.says("GET runs/7/", OVER)
    refused = terminal("logs", "7", "--worker", "7")
    assert refused.exit_code == 6
    assert refused.stderr.endswith(
        " Once a run is over, the portal keeps the logs of up to eight of its pods: of those that failed, "
        "and then of those with the lowest numbers.\n"
    )


def pods(count: int) -> list[dict[str, Any]]:
    """The pods of a run of several workers."""
    return [{**POD, "name": f"bert-{n}", "number": n} for n in range(count)]


def by_pod(**answers: list[Answer]) -> Callable[[Call], Answer]:
    """Each pod's own answers, one after the other, the last of them for ever; its number is behind a "w"."""

    def on(call: Call) -> Answer:
        [(_, pod)] = [
            one for one in parse_qsl(urlsplit(call.address).query) if one[0] == "pod"
        ]
        left = answers[f"w{pod.removeprefix('bert-')}"]
        return left.pop(0) if len(left) > 1 else left[0]

    return on


def test_the_lines_of_all_workers_say_whose_they_are_on_stdout(
    portal: Misbehaving, terminal: Terminal
) -> None:
    again = {**POD, "name": "bert-1-again", "number": 1}
    portal.says("GET runs/7/", {**RUN, "pods": pods(3)})
    lines = [{"place": at(1), "text": "line 1"}, {"place": at(2), "text": "line 2"}]
    gone = problem(409, "log_gone", "The pod is gone, and its log with it.")
    answers = {
        "w0": [Answer(body={"pod": "bert-0", "lines": lines})],
        "w1": [gone],
        "w2": [Answer(body={"pod": "bert-2", "lines": lines[:1]})],
        "w1-again": [Answer(body={"pod": "bert-1-again", "lines": lines[1:]})],
    }
    portal.says(LOG, by_pod(**answers))

    done = terminal("logs", "7", "--all-workers")

    assert (done.exit_code, done.stdout) == (
        0,
        "[worker 0] line 1\n[worker 0] line 2\n[worker 2] line 1\n",
    )
    assert done.stderr == "[worker 1] The pod is gone, and its log with it.\n"
    assert [one["pod"] for one in terminal.json("logs", "7", "--all-workers")] == [
        "bert-0",
        "bert-2",
    ]
    # Two attempts of one worker are told apart by their names.
    portal.answers["GET runs/7/"] = [
        Answer(body={**RUN, "pods": [*pods(2), again]}),
        Answer(body={**RUN, "pods": pods(2)[1:]}),
    ]
    assert terminal("logs", "7", "--all-workers").stdout.splitlines()[2:] == [
        "[bert-1-again] line 2"
    ]
    none = terminal("logs", "7", "--all-workers")
    assert (none.exit_code, none.stdout) == (3, "")
    both = terminal("logs", "7", "--all-workers", "--worker", "1")
    assert both.exit_code == 2
    assert "--all-workers goes with neither" in both.stderr


def test_all_workers_are_followed_at_once_and_one_that_ends_ends_no_other(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    """The last of three has to have said everything before the first goes on."""
    is_said = threading.Event()

    def last(call: Call) -> Answer:
        is_said.set()
        return Answer(stream=written("c 1") + END)

    def first(call: Call) -> Answer:
        if call.headers.get("Last-Event-ID"):
            assert is_said.wait(20)
            return Answer(stream=written("a 2", first=2) + END)
        return Answer(stream=written("a 1") + "id: x", breaks=True)

    def on(call: Call) -> Answer:
        if "bert-0" in call.address:
            return first(call)
        if "bert-1" in call.address:
            return Answer(stream=written("b 1") + END)
        return last(call)

    two = pods(3)[:2]
    portal.says(
        "GET runs/7/",
        {**RUN, "state": "waiting", "pods": []},
        {**RUN, "pods": two},
        {**RUN, "pods": pods(3)},
        {**OVER, "state": "failed", "pods": pods(3)},
    )
    portal.says(LOG, on)

    done = terminal("logs", "7", "-f", "--all-workers")

    assert done.exit_code == 1
    assert sorted(done.stdout.splitlines()) == [
        "[worker 0] a 1",
        "[worker 0] a 2",
        "[worker 1] b 1",
        "[worker 2] c 1",
    ]
    assert done.stderr.splitlines() == [
        "bert-1a2b3c4d: waiting.",
        "bert-1a2b3c4d: failed after 1 h 2 min, 6.63 USD.",
    ]


def test_a_worker_whose_log_cannot_be_read_is_told_and_the_others_are_read(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    first, second = pods(2)
    unstarted = {**first, "word": "Starting", "started_at": None}
    portal.says(
        "GET runs/7/",
        {**RUN, "pods": [unstarted, second]},
        # The one whose log cannot be read ends nothing: the other has yet to begin.
        {**RUN, "pods": [unstarted, second]},
        {**RUN, "pods": [first, second]},
        {**OVER, "pods": [first, second]},
    )
    fine = Answer(stream=written("a 1") + END)
    portal.says(LOG, by_pod(w0=[fine], w1=[problem(500, "unexpected", "It broke.")]))

    done = terminal("logs", "7", "-f", "--all-workers")

    assert (done.exit_code, done.stdout) == (5, "[worker 0] a 1\n")
    assert done.stderr.startswith("[worker 1] It broke.\n")
    assert "bert-1a2b3c4d: finished after" in done.stderr
    assert done.stderr.endswith("1 of 2 logs could not be read to their end.\n")


def test_of_a_worker_that_begins_anew_everything_is_read_and_nothing_of_before(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    """What is kept of the first attempt was there before anybody followed."""
    [pod] = pods(1)
    again = {**pod, "name": "bert-anew", "started_at": "2026-11-28T11:00:00Z"}
    kept = [
        {"name": name, "number": 0, "attempt": attempt, "kept_at": ""}
        for name, attempt in (("bert-anew", 3), ("bert-before", 1))
    ]
    portal.says(
        "GET runs/7/",
        {**RUN, "pods": [pod], "kept_logs": kept[1:]},
        {**RUN, "pods": [again], "kept_logs": kept[1:]},
        {**OVER, "pods": [], "kept_logs": kept},
    )

    def on(call: Call) -> Answer:
        assert "bert-before" not in call.address
        if "tail=2" in call.address:
            place = "2026-11-28T10:00:00Z.0"
            lines = [{"place": place, "text": "of the first pod"}]
            return Answer(body={"pod": pod["name"], "lines": lines})
        if "bert-anew" in call.address:
            return Answer(stream=written("everything of the second") + END)
        return Answer(stream=END)

    portal.says(LOG, on)

    done = terminal("logs", "7", "-f", "--all-workers", "--tail", "2")

    assert done.stdout.splitlines() == [
        "[worker 0] of the first pod",
        "[worker 0] everything of the second",
    ]


def test_what_breaks_while_a_log_is_read_is_told_and_is_no_good_end(
    portal: Misbehaving,
    terminal: Terminal,
    pauses: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def breaks(*args: object, **named: object) -> bool:
        raise ValueError("not a line")

    monkeypatch.setattr(following, "print_log", breaks)
    portal.says("GET runs/7/", {**RUN, "pods": pods(1)}, {**OVER, "pods": pods(1)})
    done = terminal("logs", "7", "-f", "--all-workers")
    assert done.exit_code == 5
    assert "Its log could not be read: ValueError: not a line" in done.stderr


@pytest.mark.parametrize("more", [(), ("--all-workers",)])
def test_what_was_followed_is_not_read_again_from_what_is_kept_of_it(
    portal: Misbehaving, terminal: Terminal, pauses: list[float], more: tuple[str, ...]
) -> None:
    kept = [{"name": "bert-0", "number": 0, "attempt": 1, "kept_at": ""}]
    stopped = {**OVER, "state": "stopped", "pods": [], "kept_logs": kept}
    portal.says("GET runs/7/", RUN, stopped)
    line = {"place": at(1), "text": "a 1"}
    portal.says(
        LOG,
        Answer(stream=written("a 1") + END),
        {"pod": "bert-0", "lines": [line]},
    )

    done = terminal("logs", "7", "-f", *more)

    assert [one[-3:] for one in done.stdout.splitlines()] == ["a 1"]


def test_of_more_workers_than_may_be_followed_at_once_the_others_come_later(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    portal.says("GET runs/7/", {**RUN, "pods": pods(12)}, {**OVER, "pods": pods(12)})
    line = {"place": at(1), "text": "kept"}

    def on(call: Call) -> Answer:
        if "follow" in call.address:
            return Answer(stream=written("followed") + END)
        return Answer(body={"pod": "", "lines": [line]})

    portal.says(LOG, on)

    done = terminal("logs", "7", "-f", "--all-workers")

    assert done.exit_code == 0, done.stderr
    said = done.stdout.splitlines()
    assert sorted(said) == sorted(
        f"[worker {n}] {'followed' if n < 10 else 'kept'}" for n in range(12)
    )
    assert done.stderr.startswith(
        "The portal lets you follow 10 logs at once: 2 more follow as these end."
    )


def test_all_workers_of_a_run_without_a_pod_are_refused_as_one_is(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.says("GET runs/7/", {**OVER, "pods": []})
    portal.says(LOG, problem(409, "log_gone", "The pod is gone, and its log with it."))
    for more in ((), ("--all-workers",), ("--all-workers", "--json")):
        refused = terminal("logs", "7", *more)
        assert (refused.exit_code, refused.stdout, refused.stderr) == (
            3,
            "",
            "The pod is gone, and its log with it.\n",
        )


@pytest.mark.parametrize("typed", [["--worker", "1"], ["--pod", "bert-1"]])
def test_a_log_whose_pod_is_gone_is_found_by_its_number_where_it_is_kept(
    portal: Misbehaving, terminal: Terminal, typed: list[str]
) -> None:
    kept = [
        {"name": f"bert-{n}", "number": n, "attempt": None, "kept_at": ""}
        for n in range(2)
    ]
    portal.says("GET runs/7/", {**OVER, "pods": [], "kept_logs": kept})
    line = {"place": "2026-11-28T10:00:00Z.0", "text": "epoch 1"}
    portal.says(LOG, {"pod": "bert-1", "lines": [line]})
    shown = terminal("logs", "7", *typed)
    assert (shown.exit_code, shown.stdout) == (0, "epoch 1\n")
    assert "pod=bert-1" in portal.calls[-1].address


def test_of_several_attempts_the_log_of_the_last_is_read(
    portal: Misbehaving, terminal: Terminal
) -> None:
    kept = [
        {"name": f"bert-{name}", "number": None, "attempt": attempt, "kept_at": ""}
        for name, attempt in (("second", 2), ("first", 1))
    ]
    portal.says("GET runs/7/", {**OVER, "pods": [], "kept_logs": kept})
    line = {"place": "2026-11-28T10:00:00Z.0", "text": "epoch 1"}
    portal.says(LOG, {"pod": "bert-second", "lines": [line]})
    assert terminal("logs", "7").exit_code == 0
    assert "pod=bert-second" in portal.calls[-1].address
    assert terminal("logs", "7", "--pod", "bert-first").exit_code == 0
    assert "pod=bert-first" in portal.calls[-1].address


def test_what_is_kept_of_an_earlier_attempt_is_read_while_the_run_goes_on(
    portal: Misbehaving, terminal: Terminal
) -> None:
    kept = [
        {"name": "bert-0", "number": 0, "attempt": attempt, "kept_at": ""}
        for attempt in (2, 1)
    ]
    portal.says("GET runs/7/", {**RUN, "kept_logs": kept})
    line = {"place": "2026-11-28T10:00:00Z.0", "text": "epoch 1"}
    portal.says(LOG, {"pod": "bert-0", "lines": [line]})
    for more in ([], ["--worker", "0"], ["--pod", "bert-0"], ["--all-workers"]):
        shown = terminal("logs", "7", "--attempt", "1", *more)
        before = "[worker 0] " if "--all-workers" in more else ""
        assert (shown.exit_code, shown.stdout) == (0, f"{before}epoch 1\n"), (
            shown.stderr
        )
        assert "pod=bert-0&attempt=1" in portal.calls[-1].address
    assert terminal("logs", "7", "--all-workers").exit_code == 0
    assert "attempt" not in portal.calls[-1].address
    refused = terminal("logs", "7", "--attempt", "1", "-f")
    assert refused.exit_code == 2
    assert "--follow goes not with --attempt" in refused.stderr


def test_waiting_for_the_end_of_a_run_that_is_over_is_no_failure(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.says("GET runs/7/", OVER)
    portal.says(
        "POST runs/7/stop/", problem(409, "run_is_over", "The run is over: finished.")
    )
    waited = terminal("stop", "7", "--wait")
    assert (waited.exit_code, waited.stderr) == (
        0,
        "bert-1a2b3c4d was over already: finished.\n",
    )
    assert terminal.json("stop", "7", "--wait")["state"] == "finished"
    refused = terminal("stop", "7")
    assert (refused.exit_code, refused.stderr) == (3, "The run is over: finished.\n")


def test_what_else_is_refused_of_a_stop_is_refused_with_wait_too(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.says("GET runs/7/", RUN)
    portal.says("POST runs/7/stop/", problem(403, "not_of_the_team", "You may not."))
    refused = terminal("stop", "7", "--wait")
    assert (refused.exit_code, refused.stderr) == (3, "You may not.\n")
