"""The commands of README and tutorial are found whole, and run against a demo by `make demo-check`."""

import os
import re
from pathlib import Path

import pytest

from scripts.documents import DOCUMENTS, HOW_TOS, blocks, filled_in, run, run_how_to
from scripts.expecting import StepFailed

TOKENS = {"Ada": "qm_ada", "Priya": "qm_priya", "Elena": "qm_elena"}
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
    assert len(found) == len(re.findall(r"^```(?:console|sh)$", path.read_text(), re.MULTILINE))
    for each in found:
        assert each.not_run or filled_in(each.body, url=URL, tokens=TOKENS)
    if path in DOCUMENTS:
        assert sum(bool(each.not_run) for each in found) <= 1


def test_what_a_block_prints_is_compared_with_what_is_written(tmp_path: Path) -> None:
    page = document(tmp_path, block("A=1"), block('echo "count: $A"'), "<!-- prints: count: 1 -->")
    assert run(page, url=URL, tokens=TOKENS) == "2 blocks, 0 left out"
    page = document(tmp_path, block("A=1"), block('echo "count: $A"'), "<!-- prints: count: 2 -->")
    with pytest.raises(StepFailed, match="'count: 2' is not in what this printed"):
        run(page, url=URL, tokens=TOKENS)


def test_a_command_that_fails_is_named_with_what_it_printed(tmp_path: Path) -> None:
    page = document(tmp_path, block("echo fine"), block("echo why; false | cat"), block("echo never"))
    with pytest.raises(StepFailed, match=r"(?s)false \| cat.*It printed:\s+why"):
        run(page, url=URL, tokens=TOKENS)


def test_a_block_that_is_left_out_says_why_and_is_counted(tmp_path: Path) -> None:
    page = document(tmp_path, "<!-- not run: it would end the world -->\n" + block("false"), block("true"))
    assert run(page, url=URL, tokens=TOKENS) == "1 blocks, 1 left out"


def test_what_nobody_can_fill_in_is_an_error() -> None:
    with pytest.raises(StepFailed, match="Nobody knows"):
        filled_in("OTHER=…", url=URL, tokens=TOKENS)


def test_most_how_tos_are_run_and_what_is_left_out_needs_something_that_a_demo_has_not() -> None:
    found = [block for path in HOW_TOS for block in blocks(path)]
    left_out = {block.not_run for block in found if block.not_run}
    assert sum(not block.not_run for block in found) > len(found) / 2
    assert all(re.match(r"(Docker|kubectl|a )", reason) for reason in left_out), left_out


def test_a_how_to_is_run_as_a_platform_lead_with_the_commands_of_a_container(tmp_path: Path) -> None:
    page = document(
        tmp_path,
        block("echo $URL $TOKEN $MEMBER > said; cat said"),
        f"<!-- prints: {URL}/api/v1 qm_priya qm_ada -->",
        block("docker compose exec web python -c 'print(6 * 7)'", "cp .env.example .env"),
        "<!-- prints: 42 -->",
        block("qm --version; echo $QM_URL $QM_TOKEN"),
        "<!-- prints: qm, version -->",
        f"<!-- prints: {URL} qm_ada -->",
    )
    folder = tmp_path / "own"
    printed = run_how_to(page, url=URL, tokens=TOKENS, folder=folder, env=os.environ)
    assert printed == "3 blocks, 0 left out"
    assert (folder / ".env").exists()
    page = document(tmp_path, block("docker compose up -d"))
    with pytest.raises(StepFailed, match="not in a demo: docker compose up -d"):
        run_how_to(page, url=URL, tokens=TOKENS, folder=folder, env=os.environ)
