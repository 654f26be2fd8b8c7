"""Following requests and what is held under them: what is told, what is waited for, and what is given back."""

import json
from pathlib import Path
from typing import Any

import pytest

from qm import awaiting
from tests.qm.asked import (
    ADA,
    DECISION,
    ENDED,
    GRANTED,
    HELD,
    PRIYA,
    REJECTED,
    SETTING_UP,
    STEP,
    TEAM,
    WAITING,
)
from tests.qm.conftest import Terminal
from tests.qm.in_a_terminal import in_a_terminal
from tests.qm.misbehaving import CUT, Answer, Misbehaving, problem

VOLUME = {
    **HELD,
    "id": 42,
    "offering": "volume",
    "what": "500 GiB volume corpus",
    "cluster": "training",
    "flavor": None,
    "reference": "request-4",
    "gpus": 0,
}
RESERVED = {
    **HELD,
    "offering": "reservation",
    "what": "3 × ND96isr_H100_v5",
    "flavor": None,
    "gpus": 0,
}
GONE = {
    "allocation": 41,
    "what": "2 × A100",
    "begun_at": HELD["begun_at"],
    "charged_from": HELD["charged_from"],
    "ended_at": "2026-11-29T12:00:00Z",
    "end_reason": "returned",
    "ended_by": "Priya Raman",
    "taken_back_because": "Others wait.",
    "usd_in_all": "14.68",
}
GIVE_BACK, LET_GO = "POST allocations/41/give-back/", "POST requests/17/let-go/"


def listed(*rows: Any, following: str | None = None) -> dict[str, Any]:
    """A page of a list."""
    return {"next": following, "previous": None, "results": list(rows)}


@pytest.fixture
def portal(server: Misbehaving) -> Misbehaving:
    """A portal with one request, which waits, and one allocation."""
    server.says("GET me/", {"oid": "1", "teams": [TEAM]})
    server.says("GET requests/", listed(WAITING, {**GRANTED, "id": 4}))
    server.says("GET requests/17/", WAITING)
    server.says("GET requests/17/comments/", {"results": []})
    return server


def cells(text: str) -> list[str]:
    """Lines whose columns are one space apart."""
    return [" ".join(line.split()) for line in text.splitlines()]


def test_a_portal_of_another_version_is_named_in_a_sentence(
    portal: Misbehaving, terminal: Terminal
) -> None:
    other = {name: said for name, said in WAITING.items() if name != "until_now"}
    portal.answers["GET requests/17/"] = [Answer(body=other)]
    done = terminal("request", "17")
    assert (done.exit_code, done.stdout) == (5, "")
    assert done.stderr == (
        "The portal answers without 'until_now': it is of another version than this qm, 1.0.0. Install the qm of the "
        "portal's version.\n"
    )


def test_a_list_tells_state_and_who_must_act(
    portal: Misbehaving, terminal: Terminal
) -> None:
    done = terminal("requests", "--mine", "--team", "vision")

    assert done.exit_code == 0, done.stderr
    assert cells(done.stdout) == [
        "id what state where until team by cost whose turn",
        "17 2 × A100 waiting training/a100 2026-12-02 10:00 UTC vision Ada Okafor 528.48 USD Platform leads decide",
        "4 2 × A100 held training/a100 2026-12-02 10:00 UTC vision Ada Okafor 528.48 USD",
    ]
    [asked] = portal.sent("GET requests/")
    assert asked.address.endswith("?team=vision&requester=1&live=true&limit=25")
    # What is there already is nobody's turn.
    assert portal.sent("GET requests/4/") == []


@pytest.mark.parametrize(
    ("typed", "query", "said"),
    [
        ((), "live=true&limit=25", "None waits or is held: --all shows earlier ones."),
        (("--all",), "limit=25", "There are none."),
        (
            ("--state", "lapsed", "--limit", "3"),
            "state=lapsed&limit=3",
            "There are none.",
        ),
    ],
)
def test_a_list_leaves_out_what_is_over_unless_it_is_wanted(
    portal: Misbehaving,
    terminal: Terminal,
    typed: tuple[str, ...],
    query: str,
    said: str,
) -> None:
    portal.answers["GET requests/"] = [Answer(body=listed())]
    done = terminal("requests", *typed)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", f"{said}\n")
    assert portal.calls[0].address.endswith(f"/requests/?{query}")
    assert terminal.json("requests", *typed) == listed()


def test_one_request_tells_its_reason_who_decides_and_what_comes(
    portal: Misbehaving, terminal: Terminal
) -> None:
    said = cells(terminal("request", "17").stdout)

    assert "state waiting" in said
    assert "whose turn Platform leads decide" in said
    assert "reason For the review." in said
    assert "namespace qm-vision-main" in said
    assert "cost 528.48 USD in all: 2 × $3.67 per GPU-hour" in said
    assert "decided by platform leads (should decide by 2026-11-30 10:00 UTC)" in said
    assert (
        "2026-11-29 10:00 UTC Ada Okafor asked for 2 × A100. Platform leads, then managers decide."
        in said
    )
    assert said[said.index("when what comes") + 1 :] == [
        "now Platform leads decide",
        "2026-11-30 10:00 UTC Should be decided by",
        "later Then managers decide",
    ]
    assert terminal.json("request", "17") == WAITING


def test_a_request_tells_everything_that_happened_to_it_in_order(
    portal: Misbehaving, terminal: Terminal
) -> None:
    later = {**STEP, "position": 1, "label": "managers", "quorum": 2, "opened_at": None}
    asked = {
        **WAITING,
        "turn": "requester",
        "content_version": 2,
        "steps": [
            {**later, "version": 2},
            {**STEP, "label": "of before", "reminded_at": "2026-11-29T15:00:00Z"},
            {
                **STEP,
                "version": 2,
                "paused_at": "2026-11-29T13:00:00Z",
                "stand_in": PRIYA,
            },
        ],
        "decisions": [
            {
                **DECISION,
                "count": 1,
                "until": "2026-12-01T10:00:00Z",
                "reason": "One is enough.",
            },
            {
                **DECISION,
                "verdict": "ask",
                "count": None,
                "until": None,
                "content_version": 2,
                "stands_in_for": "Marcus",
                "reason": "Which one?",
                "at": "2026-11-29T13:00:00Z",
            },
        ],
        "reroutings": [{"at": "2026-11-29T14:00:00Z", "words": "Policy 4 came."}],
        "tasks": [
            {
                "title": "Make it",
                "assignee": PRIYA,
                "taken_at": "2026-11-29T16:00:00Z",
                "done_at": "2026-11-29T17:00:00Z",
                "state": "failed",
                "note": "No room",
            }
        ],
    }
    portal.answers["GET requests/17/"] = [Answer(body=asked)]
    comment = {"by": ADA, "text": "Soon?\x1b[2J", "at": "2026-11-29T12:00:00Z"}
    portal.answers["GET requests/17/comments/"] = [Answer(body={"results": [comment]})]

    done = terminal("request", "17")

    said = cells(done.stdout)
    assert (
        "decided by platform leads (stands still since 2026-11-29 13:00 UTC, Priya Raman in their place), "
        "then 2 of the managers (not yet)" in said
    )
    assert "question Priya Raman for Marcus: Which one?" in said
    assert "Whoever asked for it answers: qm answer 17 TEXT\n" in done.stderr
    first, last = (
        said.index("when what happened") + 2,
        said.index("when what comes") - 1,
    )
    assert [line.partition(" UTC ")[2] for line in said[first:last]] == [
        "Priya Raman approved: One is enough. Void: it was changed since.",
        "Ada Okafor wrote: Soon?[2J",
        "Priya Raman for Marcus asked: Which one?",
        "Policy 4 came.",
        "The portal reminded the of before.",
        "Priya Raman took it on: Make it.",
        "Priya Raman could not do it: No room",
    ]


def test_a_changed_request_tells_what_was_asked_at_first_and_what_was_changed(
    portal: Misbehaving, terminal: Terminal
) -> None:
    first = {**WAITING["evaluations"][0], "content_version": 1}
    again = "2026-11-29T12:00:00Z"
    judged = {
        **first,
        "at": again,
        "content_version": 2,
        "answer": {**first["answer"], "sentence": "Platform leads decide."},
    }
    asked = {
        **WAITING,
        "content_version": 2,
        "evaluations": [
            first,
            judged,
            {**judged, "at": "2026-11-29T13:00:00Z"},
        ],
        "versions": [
            {
                "content_version": 1,
                "at": WAITING["created_at"],
                "by": ADA,
                "name": "8 × A100",
                "changed": [],
            },
            {
                "content_version": 2,
                "at": again,
                "by": ADA,
                "name": "2 × A100",
                "changed": ["GPUs: 8 → 2", "Cost: $2,114 → $528"],
            },
        ],
    }
    portal.answers["GET requests/17/"] = [Answer(body=asked)]

    said = cells(terminal("request", "17").stdout)

    assert [row for row in said if row.startswith("2026-11-29 1")] == [
        "2026-11-29 10:00 UTC Ada Okafor asked for 8 × A100. Platform leads, then managers decide.",
        "2026-11-29 12:00 UTC Ada Okafor changed it. GPUs: 8 → 2; Cost: $2,114 → $528. Platform leads decide.",
        "2026-11-29 13:00 UTC Policy 3 judged it again. Platform leads decide.",
    ]


def test_of_what_a_vote_left_it_tells_how_much_it_is_about_and_what_that_costs(
    portal: Misbehaving, terminal: Terminal
) -> None:
    asked = {
        **WAITING,
        "count_now": 1,
        "until_now": "2026-12-01T10:00:00Z",
        "usd_now": "176.16",
        "decisions": [{**DECISION, "count": 1}],
    }
    portal.answers["GET requests/17/"] = [Answer(body=asked)]

    said = cells(terminal("request", "17").stdout)

    assert "what 2 × A100, 1 approved so far" in said
    assert "until 2026-12-01 10:00 UTC" in said
    assert "cost 176.16 USD in all; 528.48 USD as asked: 2 × $3.67 per GPU-hour" in said


def test_of_what_nobody_can_approve_it_tells_what_stands_in_its_way(
    portal: Misbehaving, terminal: Terminal
) -> None:
    words = "Nobody can approve all of it before the budget is raised: ask for less."
    closed = "A100 on Training is not offered now."
    portal.answers["GET requests/17/"] = [
        Answer(body={**WAITING, "over_budget": words}),
        Answer(body={**WAITING, "why_closed": closed}),
    ]

    assert f"in its way {words}" in cells(terminal("request", "17").stdout)
    assert f"in its way {closed}" in cells(terminal("request", "17").stdout)


def test_of_what_is_granted_for_a_shorter_time_it_tells_that_end_and_what_it_costs(
    portal: Misbehaving, terminal: Terminal
) -> None:
    end = "2026-11-30T10:00:00Z"
    vote = {**DECISION, "count": 1, "until": end}
    shorter = {
        **GRANTED,
        "approved_until": end,
        "usd_now": "176.16",
        "decisions": [vote],
    }
    portal.answers["GET requests/17/"] = [
        Answer(body={**shorter, "allocation": None}),
        Answer(body={**shorter, "allocation": {**HELD, "until": end}}),
    ]
    for _ in range(2):
        said = cells(terminal("request", "17").stdout)
        assert "until 2026-11-30 10:00 UTC" in said
        assert any(
            line.endswith("Priya Raman approved 1 of 2 until 2026-11-30 10:00 UTC.")
            for line in said
        )
        assert any(
            line.startswith("cost 176.16 USD in all; 528.48 USD as asked")
            for line in said
        )
    portal.answers["GET requests/"] = [
        Answer(body={"results": [shorter], "next": None})
    ]
    line = cells(terminal("requests").stdout)[1]
    assert "2026-11-30 10:00 UTC" in line
    assert "176.16 USD" in line


def test_of_what_is_granted_it_tells_since_when_it_is_there(
    portal: Misbehaving, terminal: Terminal
) -> None:
    fewer = {**GRANTED, "approved_count": 1}
    portal.answers["GET requests/17/"] = [Answer(body=fewer), Answer(body=ENDED)]
    said = cells(terminal("request", "17").stdout)
    assert {"what 2 × A100, 1 granted", "state held"} <= {*said}
    assert "2026-11-29 10:00 UTC It is there, and costs from now on." in said
    assert "when what comes" not in cells(terminal("request", "17").stdout)


def test_what_was_made_after_a_part_of_it_had_gone_back_tells_since_when_it_is_there(
    portal: Misbehaving, terminal: Terminal
) -> None:
    part = {**GONE, "what": "1 × A100", "charged_from": None}
    portal.answers["GET requests/17/"] = [Answer(body={**GRANTED, "ended": [part]})]
    said = cells(terminal("request", "17").stdout)
    assert "2026-11-29 10:00 UTC It began." in said
    assert "2026-11-29 10:00 UTC It is there, and costs from now on." in said


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({}, "Ada Okafor gave 2 × A100 back."),
        ({"begun_at": None, "charged_from": None}, "Ada Okafor cancelled the booking."),
        ({"end_reason": "expired"}, "The end date of 2 × A100 came."),
        ({"end_reason": "renewed"}, "2 × A100 went on under a renewal."),
        (
            {"end_reason": "failed", "begun_at": None, "charged_from": None},
            "2 × A100 could not be made.",
        ),
    ],
)
def test_what_has_ended_tells_how(
    portal: Misbehaving, terminal: Terminal, how: dict[str, Any], said: str
) -> None:
    gone = {**GONE, "ended_by": "Ada Okafor", "taken_back_because": "", **how}
    portal.answers["GET requests/17/"] = [Answer(body={**ENDED, "ended": [gone]})]

    last = cells(terminal("request", "17").stdout)[-1]

    assert last == f"2026-11-29 12:00 UTC {said}"


def test_of_what_was_taken_back_it_tells_by_whom_why_and_what_it_has_cost(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.answers["GET requests/17/"] = [Answer(body={**ENDED, "ended": [GONE]})]

    said = cells(terminal("request", "17").stdout)

    assert {
        "state ended",
        "ended 2026-11-29 12:00 UTC",
        "granted until 2026-12-02 10:00 UTC",
        "cost 14.68 USD in all; 528.48 USD as asked: 2 × $3.67 per GPU-hour",
        "2026-11-29 10:00 UTC It is there, and costs from now on.",
    } <= {*said}
    assert (
        said[-1]
        == "2026-11-29 12:00 UTC Priya Raman took 2 × A100 back for the platform: Others wait."
    )


@pytest.mark.parametrize(
    ("comes", "code", "said"),
    [
        (GRANTED, 0, "Request 17: held."),
        ({**GRANTED, "stage": "booked"}, 0, "Request 17: booked."),
        (REJECTED, 1, "Request 17: rejected. Not this week."),
        ({**WAITING, "stage": "lapsed", "state": "lapsed"}, 1, "Request 17: lapsed."),
        ({**GRANTED, "stage": "failed"}, 1, "Request 17: failed."),
        (ENDED, 1, "Request 17: ended."),
        (
            {
                **WAITING,
                "stage": "withdrawn",
                "state": "withdrawn",
                "withdrawn_because": "Ben withdrew it.",
            },
            1,
            "Request 17: withdrawn. Ben withdrew it.",
        ),
    ],
)
def test_waiting_ends_with_what_the_request_came_to(
    portal: Misbehaving,
    terminal: Terminal,
    pauses: list[float],
    comes: dict[str, Any],
    code: int,
    said: str,
) -> None:
    portal.answers["GET requests/17/"] = [
        Answer(body=one) for one in (WAITING, WAITING, SETTING_UP, comes)
    ]

    done = terminal("request", "17", "--wait")

    assert (done.exit_code, done.stdout) == (code, "")
    assert done.stderr.splitlines() == [
        "Request 17: Platform leads decide.",
        "Request 17: Setting up on training. Usually a few seconds.",
        said,
    ]
    assert pauses == sorted(pauses)
    assert json.loads(terminal("request", "17", "--wait", "--json").stdout) == comes


def test_whoever_stops_waiting_is_told_that_the_request_stands(
    portal: Misbehaving, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(awaiting, "sleep", interrupt)
    done = terminal("request", "17", "--wait")
    assert done.exit_code == 130
    assert done.stderr.endswith(
        "Request 17 stands as it was. To wait on: qm request 17 --wait\n"
    )


def test_a_token_that_ends_while_a_request_is_waited_for_says_that_it_stands(
    portal: Misbehaving, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(awaiting, "sleep", lambda _: None)
    ended = problem(401, "not_authenticated", "It has expired.")
    portal.answers["GET requests/17/"] = [Answer(body=WAITING), ended]
    done = terminal("request", "17", "--wait")
    assert done.exit_code == 4
    assert "It has expired.\n" in done.stderr
    assert done.stderr.endswith(
        "Request 17 stands as it was. To wait on: qm request 17 --wait\n"
    )


def test_a_request_is_withdrawn_once_however_often_it_is_sent(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    gone = {**WAITING, "state": "withdrawn", "stage": "withdrawn"}
    portal.says("POST requests/17/withdraw/", CUT, gone)

    done = terminal("withdraw", "17")

    assert (done.exit_code, done.stderr) == (0, "Request 17: withdrawn.\n")
    sent = portal.sent("POST requests/17/withdraw/")
    assert len({one.headers["Idempotency-Key"] for one in sent}) == 1
    portal.answers["POST requests/17/withdraw/"] = [
        problem(409, "already_decided", "The request is already approved.")
    ]
    done = terminal("withdraw", "17")
    assert (done.exit_code, done.stderr) == (3, "The request is already approved.\n")


def test_allocations_tell_how_much_of_them_is_used(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.says("GET allocations/", listed(VOLUME, HELD))
    use = {"gpus": 5, "used_now": 3, "used_percent": "61.50", "allocations": [40, 41]}
    unknown = {**use, "used_now": None, "used_percent": None}
    portal.says("GET utilisation/", {"results": [use]}, {"results": [unknown]})

    said = cells(terminal("allocations", "--team", "vision").stdout)

    assert said == [
        "request what state where until used USD a day team",
        "4 500 GiB volume corpus held Training, East US 2026-12-02 10:00 UTC 176.16 vision",
        "17 2 × A100 held training/a100 2026-12-02 10:00 UTC 3 of 5 now, 62 % in 7 days 176.16 vision",
    ]
    assert "held=true" in portal.sent("GET allocations/")[0].address
    assert portal.sent("GET utilisation/")[0].address.endswith("?team=vision")
    assert "now" not in terminal("allocations", "--all").stdout
    assert "held=" not in portal.sent("GET allocations/")[1].address
    assert terminal.json("allocations")["results"] == [VOLUME, HELD]


def test_some_are_given_back_under_one_key(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    portal.answers["GET requests/17/"] = [Answer(body=GRANTED)]
    rest = {**HELD, "what": "1 × A100", "gpus": 1}
    portal.says(GIVE_BACK, CUT, {"rest": rest}, {"rest": None})

    done = terminal("give-back", "17", "--gpus", "1", "--reason", "Done early.")

    assert done.exit_code == 0, done.stderr
    assert done.stderr == (
        "Request 17: given back, which leaves 1 × A100 until 2026-12-02 10:00 UTC.\n"
    )
    sent = portal.sent(GIVE_BACK)
    assert [one.body for one in sent] == [{"gpus": 1, "reason": "Done early."}] * 2
    assert len({one.headers["Idempotency-Key"] for one in sent}) == 1
    done = terminal("give-back", "17")
    assert done.stderr == "Request 17: given back, nothing of it stays.\n"
    assert portal.sent(GIVE_BACK)[-1].body == {}


def test_whoever_does_not_hear_of_it_is_told_how_to_give_no_more_back(
    portal: Misbehaving, terminal: Terminal, pauses: list[float]
) -> None:
    portal.answers["GET requests/17/"] = [Answer(body=GRANTED)]
    portal.says(GIVE_BACK, CUT)
    done = terminal("give-back", "17", "--gpus", "1", "--key", "mine")
    assert done.exit_code == 5
    assert done.stderr.endswith(
        "It may be given back. To send it again without giving back more, add: --key mine\n"
    )


@pytest.mark.parametrize("held", [VOLUME, {**HELD, "begun_at": None}])
def test_what_takes_no_gpus_yet_or_ever_ends_as_a_whole(
    portal: Misbehaving, terminal: Terminal, held: dict[str, Any]
) -> None:
    portal.answers["GET requests/17/"] = [Answer(body={**GRANTED, "allocation": held})]
    portal.says(LET_GO, ENDED)

    refused = terminal("give-back", "17", "--gpus", "1")
    done = terminal("give-back", "17")

    assert refused.exit_code == 2
    assert "this ends as a whole" in refused.stderr
    assert (done.exit_code, done.stderr) == (0, "Request 17: ended.\n")
    assert len(portal.sent(LET_GO)) == 1


def test_what_is_over_is_not_given_back(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.answers["GET requests/17/"] = [Answer(body=ENDED)]
    done = terminal("give-back", "17")
    assert done.exit_code == 3
    assert done.stderr.startswith("Nothing is held under request 17, which is ended.")
    assert done.stderr.endswith("under which request: qm allocations\n")


EFFECT = {
    "unit": "gpu",
    "count": 1,
    "stays": 1,
    "until": "2026-12-02T10:00:00Z",
    "held": 4,
    "held_after": 3,
    "usd_per_day": "352.32",
    "usd_per_day_after": "264.24",
    "freed_usd": "176.16",
    "in_use": "No work in qm-vision-main used A100 on 30 Nov.",
    "notebook": None,
    "renewal": None,
}
PREVIEW = "POST allocations/41/give-back/preview/"


def test_what_giving_back_changes_is_told_and_nothing_sent(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.answers["GET requests/17/"] = [Answer(body=GRANTED)]
    portal.says(PREVIEW, EFFECT)
    done = terminal("give-back", "17", "--gpus", "1", "--dry-run")
    assert done.exit_code == 0, done.stderr
    assert cells(done.stdout) == [
        "goes back 1 of 2 × A100",
        "stays 1 until 2026-12-02 10:00 UTC",
        "quota 4 GPUs now, 3 then",
        "cost 352.32 USD a day now, 264.24 USD then",
        "freed 176.16 USD in the budget",
        "work No work in qm-vision-main used A100 on 30 Nov.",
    ]
    assert done.stderr == "Nothing is sent. To send it, leave out --dry-run.\n"
    assert [one.body for one in portal.sent(PREVIEW)] == [{"gpus": 1}]
    assert portal.sent(GIVE_BACK) == []


@pytest.mark.parametrize(
    ("answer", "code", "sent"), [(b"n\n", 1, []), (b"y\n", 0, [{"gpus": 1}])]
)
def test_in_a_terminal_it_is_told_before_the_question_what_giving_back_changes(
    portal: Misbehaving,
    tmp_path: Path,
    answer: bytes,
    code: int,
    sent: list[dict[str, int]],
) -> None:
    portal.answers["GET requests/17/"] = [Answer(body=GRANTED)]
    portal.says(PREVIEW, EFFECT)
    portal.says(GIVE_BACK, {"rest": {**HELD, "what": "1 × A100", "gpus": 1}})
    typed = ("give-back", "17", "--gpus", "1")
    ended, shown = in_a_terminal(portal, tmp_path, *typed, answer=answer)
    assert ended == code, shown
    assert [one.body for one in portal.sent(GIVE_BACK)] == sent
    question = "Give back 1 of 2 × A100 of Training, East US? 1 stays until 2026-12-02 10:00 UTC. [y/N]"
    assert question in shown
    assert "4 GPUs now, 3 then" in shown.partition(question)[0]
    assert ("Nothing is sent." in shown) is not bool(sent)


def test_in_a_terminal_a_yes_said_before_asks_for_no_preview(
    portal: Misbehaving, tmp_path: Path
) -> None:
    portal.answers["GET requests/17/"] = [Answer(body=GRANTED)]
    portal.says(GIVE_BACK, {"rest": None})
    ended, shown = in_a_terminal(
        portal, tmp_path, "give-back", "17", "--yes", answer=b""
    )
    assert (ended, len(portal.sent(PREVIEW))) == (0, 0), shown


def test_one_gpu_is_told_in_the_singular(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.answers["GET requests/17/"] = [Answer(body=GRANTED)]
    portal.says(PREVIEW, {**EFFECT, "held": 1, "held_after": 0})
    said = cells(terminal("give-back", "17", "--dry-run").stdout)
    assert "quota 1 GPU now, 0 then" in said


def test_what_else_ends_with_it_is_told(
    portal: Misbehaving, terminal: Terminal
) -> None:
    notebook = {"id": 3, "title": "Explore", "owner": "Ada Okafor"}
    portal.answers["GET requests/17/"] = [Answer(body=GRANTED)]
    portal.says(PREVIEW, {**EFFECT, "stays": 0, "renewal": 19, "notebook": notebook})
    said = cells(terminal("give-back", "17", "--dry-run").stdout)
    assert "stays nothing" in said
    assert (
        "renewal Request 19, which asks to keep them longer, is withdrawn with this."
        in said
    )
    assert (
        "notebook Explore of Ada Okafor is stopped at once; its volumes stay." in said
    )


def test_a_renewal_of_what_stays_in_part_is_told_to_ask_for_no_more(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.answers["GET requests/17/"] = [Answer(body=GRANTED)]
    portal.says(PREVIEW, {**EFFECT, "renewal": 19})
    said = cells(terminal("give-back", "17", "--gpus", "1", "--dry-run").stdout)
    assert (
        "renewal Request 19, which asks to keep them longer, asks for no more than what stays."
        in said
    )


def test_what_takes_no_gpus_is_told_to_end_as_a_whole(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.answers["GET requests/17/"] = [
        Answer(body={**GRANTED, "allocation": VOLUME})
    ]
    done = terminal("give-back", "17", "--dry-run")
    assert "ends 500 GiB volume corpus" in cells(done.stdout)
    assert portal.sent(LET_GO) == []


def test_some_machines_of_a_reservation_are_given_back(
    portal: Misbehaving, terminal: Terminal
) -> None:
    portal.answers["GET requests/17/"] = [
        Answer(body={**GRANTED, "allocation": RESERVED})
    ]
    portal.says(PREVIEW, {**EFFECT, "unit": "machine", "count": 2})
    rest = {**RESERVED, "what": "1 × ND96isr_H100_v5"}
    portal.says(GIVE_BACK, {"rest": rest})
    done = terminal("give-back", "17", "--machines", "2", "--dry-run")
    assert "goes back 2 of 3 × ND96isr_H100_v5" in cells(done.stdout)
    assert "reserved 4 machines now, 3 then" in cells(done.stdout)
    done = terminal("give-back", "17", "--machines", "2")
    assert (done.exit_code, done.stderr) == (
        0,
        "Request 17: given back, which leaves 1 × ND96isr_H100_v5 until 2026-12-02 10:00 UTC.\n",
    )
    sent = [*portal.sent(PREVIEW), *portal.sent(GIVE_BACK)]
    assert [one.body for one in sent] == [{"machines": 2}] * 2


@pytest.mark.parametrize(
    ("held", "option"),
    [(RESERVED, "--gpus"), (HELD, "--machines"), (VOLUME, "--machines")],
)
def test_what_is_counted_otherwise_is_refused_before_anything_is_sent(
    portal: Misbehaving, terminal: Terminal, held: dict[str, Any], option: str
) -> None:
    portal.answers["GET requests/17/"] = [Answer(body={**GRANTED, "allocation": held})]
    done = terminal("give-back", "17", option, "1")
    assert (done.exit_code, portal.sent(GIVE_BACK), portal.sent(LET_GO)) == (2, [], [])
    assert option in done.stderr


def test_too_many_machines_are_refused_at_their_option(
    portal: Misbehaving, terminal: Terminal
) -> None:
    reserved = {**GRANTED, "allocation": RESERVED}
    portal.answers["GET requests/17/"] = [Answer(body=reserved)]
    lacking = "4 cannot be given back: 3 are held."
    portal.answers[PREVIEW] = [
        problem(409, "not_held", lacking, ("/machines", lacking))
    ]
    done = terminal("give-back", "17", "--machines", "4", "--dry-run")
    assert (done.exit_code, done.stderr) == (3, f"--machines: {lacking}\n")


@pytest.mark.parametrize(
    ("command", "path", "told"),
    [
        ("answer", "POST requests/17/answer/", "Request 17: answered."),
        ("comment", "POST requests/17/comments/", "Request 17: written."),
    ],
)
def test_a_request_is_talked_about_once_though_the_answer_is_lost(
    portal: Misbehaving, terminal: Terminal, command: str, path: str, told: str
) -> None:
    portal.says(path, CUT, WAITING)
    done = terminal(command, "17", "Two weeks are enough.")
    assert done.exit_code == 0, done.stderr
    assert done.stderr.startswith(told)
    sent = portal.sent(path)
    assert [one.body for one in sent] == [{"text": "Two weeks are enough."}] * 2
    assert len({one.headers["Idempotency-Key"] for one in sent}) == 1
