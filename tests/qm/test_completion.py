"""What the shell completes, and that it says nothing where the portal does not."""

import pytest

from qm import completing
from tests.qm.asked import HELD as ALLOCATION
from tests.qm.asked import OPTIONS, WAITING
from tests.qm.conftest import Terminal
from tests.qm.misbehaving import CUT, HELD, Answer, Misbehaving
from tests.qm.test_retries import PLACE, RUN, SINGLE


@pytest.fixture
def portal(server: Misbehaving) -> Misbehaving:
    """A portal with one of each."""
    server.says("GET places/", {"results": [PLACE]})
    server.says("GET templates/", {"results": [SINGLE]})
    server.says(
        "GET me/", {"name": "Ada", "teams": [{"slug": "vision", "name": "Vision"}]}
    )
    server.says("GET runs/", {"next": None, "previous": None, "results": [RUN]})
    server.says("GET requests/", {"results": [WAITING]})
    server.says("GET allocations/", {"results": [ALLOCATION]})
    server.says("GET options/flavors/", {"results": OPTIONS})
    project = {"slug": "detection", "gpus": 2}
    server.says("GET teams/vision/projects/", {"results": [project]})
    server.says("GET teams/a%2Fb/projects/", {"results": []})
    return server


def completed(terminal: Terminal, line: str) -> list[str]:
    """What bash is given behind a line."""
    typed = line.split(" ")
    asked = {
        "_QM_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(typed) - 1),
    }
    done = terminal(**asked)
    if done.exit_code or done.stderr:
        raise AssertionError(done.stderr)
    return [one.partition(",")[2] for one in done.stdout.split()]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("qm show be", ["bert-1a2b3c4d"]),
        ("qm logs x", []),
        ("qm templates ", ["single-node"]),
        ("qm train --template s", ["single-node"]),
        ("qm train --place ", ["training/vision"]),
        ("qm train --flavor a", ["a100"]),
        ("qm list --team v", ["vision"]),
        ("qm li", ["limit", "list"]),
        ("qm request 1", ["17"]),
        ("qm withdraw ", ["17"]),
        ("qm renew ", ["17"]),
        ("qm give-back ", ["17"]),
        ("qm requests --team v", ["vision"]),
        # What is not offered now is not completed.
        ("qm ask --flavor ", ["a100", "training/a100"]),
        ("qm ask --team vision --flavor t", ["training/a100"]),
        ("qm ask --project d", ["detection"]),
        ("qm ask --team a/b --project d", []),
    ],
)
def test_names_are_completed(
    portal: Misbehaving, terminal: Terminal, line: str, found: list[str]
) -> None:
    assert completed(terminal, line) == found


@pytest.mark.parametrize(
    "answer", [CUT, HELD, Answer(200, b"<html>"), Answer(503, {"next": 1})]
)
def test_nothing_is_said_where_the_portal_does_not_answer_at_once(
    server: Misbehaving,
    terminal: Terminal,
    monkeypatch: pytest.MonkeyPatch,
    answer: Answer,
) -> None:
    monkeypatch.setattr(completing, "SECONDS", 0.05)
    server.says("GET runs/", answer)
    assert completed(terminal, "qm show be") == []
    assert len(server.calls) == 1


def test_nothing_is_said_to_who_has_not_signed_in(terminal: Terminal) -> None:
    assert completed(terminal, "qm show be") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_its_script(terminal: Terminal, shell: str) -> None:
    done = terminal("completion", shell)
    assert done.exit_code == 0
    assert f"_QM_COMPLETE={shell}_complete" in done.stdout
