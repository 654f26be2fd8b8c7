"""The commands of README and tutorial are found whole, and run against a demo by `make demo-check`."""

import os
import re
from pathlib import Path

import pytest

from scripts.documents import DOCUMENTS, HOW_TOS, Given, blocks, filled_in, kubectl, run
from scripts.expecting import StepFailed
from scripts.how_tos import at_hand

TOKENS = {
    "Ada": "qm_ada",
    "Priya": "qm_priya",
    "Elena": "qm_elena",
    "Mallory": "qm_mallory",
}
URL = "http://127.0.0.1:9"


def document(folder: Path, *parts: str) -> Path:
    path = folder / "page.md"
    path.write_text("\n\n".join(parts) + "\n")
    return path


def block(*lines: str) -> str:
    return "\n".join(["```console", *lines, "```"])


@pytest.mark.parametrize("path", [*DOCUMENTS, *HOW_TOS], ids=lambda path: path.name)
def test_every_block_is_run_or_says_why_not(path: Path) -> None:
    found = blocks(path)
    assert len(found) == len(
        re.findall(r"^ *```(?:console|sh)$", path.read_text(), re.MULTILINE)
    )
    for each in found:
        assert each.not_run or filled_in(each.body, url=URL, tokens=TOKENS)
    if path in DOCUMENTS:
        assert sum(bool(each.not_run) for each in found) <= 1


def test_what_a_block_prints_is_compared_with_what_is_written(tmp_path: Path) -> None:
    page = document(
        tmp_path, block("A=1"), block('echo "count: $A"'), "<!-- prints: count: 1 -->"
    )
    assert run(page, url=URL, tokens=TOKENS) == "2 blocks, 0 left out"
    page = document(
        tmp_path, block("A=1"), block('echo "count: $A"'), "<!-- prints: count: 2 -->"
    )
    with pytest.raises(StepFailed, match="'count: 2' is not in what this printed"):
        run(page, url=URL, tokens=TOKENS)


def test_a_command_that_fails_is_named_with_what_it_printed(tmp_path: Path) -> None:
    page = document(
        tmp_path,
        block("echo fine"),
        block("echo why; false | cat"),
        block("echo never"),
    )
    with pytest.raises(StepFailed, match=r"(?s)false \| cat.*It printed:\s+why"):
        run(page, url=URL, tokens=TOKENS)


def test_a_block_that_is_left_out_says_why_and_is_counted(tmp_path: Path) -> None:
    page = document(
        tmp_path,
        "<!-- not run: it would end the world -->\n" + block("false"),
        block("true"),
    )
    assert run(page, url=URL, tokens=TOKENS) == "1 blocks, 1 left out"


def test_what_nobody_can_fill_in_is_an_error() -> None:
    with pytest.raises(StepFailed, match="Nobody knows"):
        filled_in("OTHER=…", url=URL, tokens=TOKENS)


def test_a_block_of_a_list_is_run_and_what_its_reader_does_by_hand_before_it(
    tmp_path: Path,
) -> None:
    page = document(
        tmp_path,
        "1. Look:",
        "   <!-- by hand: NAME=ada -->\n   <!-- by hand: AGE=36 -->\n"
        "   ```console\n   cat <<END\n   $NAME $AGE\n   END\n   ```",
        "   <!-- prints: ada 36 -->",
    )
    assert [each.body for each in blocks(page)] == ["cat <<END\n$NAME $AGE\nEND\n"]
    assert run(page, url=URL, tokens=TOKENS) == "1 blocks, 0 left out"


def test_lines_are_compared_in_their_order_wherever_they_are_broken(
    tmp_path: Path,
) -> None:
    page = document(tmp_path, block("echo yes", "echo no"), "<!-- prints: yes no -->")
    assert run(page, url=URL, tokens=TOKENS) == "1 blocks, 0 left out"
    page = document(tmp_path, block("echo yes", "echo no"), "<!-- prints: no yes -->")
    with pytest.raises(StepFailed, match="'no yes' is not in"):
        run(page, url=URL, tokens=TOKENS)


def test_what_the_text_says_is_refused_has_to_be(tmp_path: Path) -> None:
    refused = block(
        "echo one; false", "echo two >&2; exit_code() { return 3; }; exit_code"
    )
    page = document(tmp_path, refused, "<!-- refused: one two -->", block("echo after"))
    assert run(page, url=URL, tokens=TOKENS) == "2 blocks, 0 left out"
    page = document(tmp_path, block("false", "echo two"), "<!-- refused: two -->")
    with pytest.raises(StepFailed, match="this failed:\nfalse\necho two"):
        run(page, url=URL, tokens=TOKENS)


def test_a_block_that_looks_is_asked_again_until_it_prints_what_it_should(
    tmp_path: Path,
) -> None:
    counted = block("echo x >> seen", "wc -l < seen", "[ -s seen ]")
    page = document(
        tmp_path, counted, "<!-- prints within 10 s: 3 -->", block("wc -l < seen")
    )
    (tmp_path / "own").mkdir()
    assert (
        run(page, url=URL, tokens=TOKENS, given=Given(tmp_path / "own"))
        == "2 blocks, 0 left out"
    )
    assert (tmp_path / "own" / "seen").read_text() == "x\n" * 3
    page = document(
        tmp_path, block("echo never"), "<!-- prints within 1 s: at last -->"
    )
    with pytest.raises(StepFailed, match="'at last' is not in what this printed"):
        run(page, url=URL, tokens=TOKENS)


def test_a_reader_types_and_puts_their_own_in_place_of_examples(tmp_path: Path) -> None:
    page = document(
        tmp_path,
        block("read -rs KEY", 'echo "$KEY at hub.example.com"'),
        "<!-- prints: mine at here -->",
    )
    given = Given(typed="mine\n", examples={"hub.example.com": "here"})
    assert run(page, url=URL, tokens=TOKENS, given=given) == "1 blocks, 0 left out"


def test_what_this_machine_cannot_run_is_told_with_its_reason_and_the_rest_is_run(
    tmp_path: Path,
) -> None:
    page = document(
        tmp_path,
        block("kubectl apply -f deploy/"),
        "<!-- prints: created -->",
        block("for each in $(kubectl get nodes); do echo $each; done"),
        block("echo the kubectl of others"),
        "<!-- prints: others -->",
    )
    told = run(
        page,
        url=URL,
        tokens=TOKENS,
        tools={"kubectl": lambda: "there is no kubectl here"},
    )
    assert told == "1 blocks, 0 left out; 2 not run, because there is no kubectl here"


@pytest.mark.parametrize(
    ("says", "why"),
    [
        (None, "there is no kubectl here"),
        (
            '{"clientVersion": {"major": "1", "minor": "20"}}',
            "kubectl is 1.20 here, and 1.24 is needed",
        ),
        ('{"clientVersion": {"major": "1", "minor": "24+"}}', ""),
        ("error: unknown flag", "kubectl does not tell its version here"),
    ],
    ids=["none", "old", "new", "another program"],
)
def test_a_kubectl_that_is_missing_or_old_is_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: str | None, why: str
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}")
    if says is not None:
        program = tmp_path / "kubectl"
        program.write_text(f"#!/bin/sh\necho '{says}'\n")
        program.chmod(0o755)
    kubectl.cache_clear()
    assert kubectl() == why
    kubectl.cache_clear()


def test_nearly_all_how_tos_are_run_and_what_is_left_out_needs_something_that_a_demo_has_not() -> (
    None
):
    found = [block for path in HOW_TOS for block in blocks(path)]
    left_out = [block.not_run for block in found if block.not_run]
    assert len(left_out) <= len(found) / 6
    assert all(
        re.match(
            r"(Docker|Helm|az|Volcano|minutes of|a measurement|a PostgreSQL|a cluster)",
            reason,
        )
        for reason in left_out
    ), left_out


@pytest.mark.slow
def test_a_how_to_is_run_as_a_platform_lead_with_the_commands_of_a_container(
    tmp_path: Path,
) -> None:
    page = document(
        tmp_path,
        block("echo $URL $TOKEN $MEMBER > said; cat said"),
        f"<!-- prints: {URL}/api/v1 qm_priya qm_ada -->",
        block(
            "docker compose exec web python -c 'print(6 * 7)'",
            "kubectl -n quartermaster-portal exec deployment/web -- python -c 'print(7 * 7)'",
            "cp .env.example .env",
        ),
        "<!-- prints: 42 49 -->",
        block("qm --version; echo $QM_URL $QM_TOKEN"),
        "<!-- prints: qm, version -->",
        f"<!-- prints: {URL} qm_ada -->",
    )
    folder = tmp_path / "own"
    given = at_hand(folder, url=URL, tokens=TOKENS, env=os.environ)
    printed = run(page, url=URL, tokens=TOKENS, given=given)
    assert printed == "3 blocks, 0 left out"
    assert (folder / ".env").exists()
    page = document(tmp_path, block("docker compose up -d"))
    with pytest.raises(StepFailed, match="not in a demo: docker compose up -d"):
        run(page, url=URL, tokens=TOKENS, given=given)
