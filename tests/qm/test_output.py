"""What a command's output meets in a shell: a reader that has enough, and a disk that is full."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.packages import ROOT
from tests.qm.misbehaving import Answer, Misbehaving, misbehaving
from tests.qm.test_retries import LOG, POD, RUN, SINGLE, written

FULL = Path("/dev/full")


@pytest.fixture
def portal() -> Iterator[Misbehaving]:
    """A portal with one template, and one run that goes on for as long as anybody asks."""
    with misbehaving() as running:
        running.says("GET templates/", {"results": [SINGLE]})
        running.says("GET runs/7/", RUN)
        line = {"place": "2026-11-23T10:00:00.1Z.0", "text": "begun"}
        running.says(
            LOG,
            {"pod": POD["name"], "lines": [line]},
            Answer(stream=written(*(f"line {number}" for number in range(9_000)))),
        )
        yield running


def qm(portal: Misbehaving, tmp_path: Path, *typed: str, into: int) -> tuple[int, str]:
    """Run a command in a process of its own, its output into a file; its exit code, and what it says on stderr."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "QM_URL": portal.url,
        "QM_TOKEN": "qm_secret",
    }
    done = subprocess.run(
        [sys.executable, "-m", "qm", *typed],
        cwd=ROOT,
        env=environment,
        stdout=into,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "typed",
    [
        ("logs", "7", "-f", "--tail", "5"),
        ("logs", "7", "-f", "--tail", "5", "--all-workers"),
        ("templates",),
        ("--help",),
    ],
)
def test_a_reader_that_has_enough_ends_it_without_a_word(
    portal: Misbehaving, tmp_path: Path, typed: tuple[str, ...]
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert qm(portal, tmp_path, *typed, into=writer) == (141, "")
    finally:
        os.close(writer)


@pytest.mark.slow
@pytest.mark.skipif(not FULL.exists(), reason="there is no device that is full")
@pytest.mark.parametrize(
    "typed",
    [
        ("logs", "7", "-f"),
        ("logs", "7", "-f", "--all-workers"),
        ("templates",),
        ("--help",),
    ],
)
def test_output_that_cannot_be_written_is_said_in_one_line(
    portal: Misbehaving, tmp_path: Path, typed: tuple[str, ...]
) -> None:
    portal.answers[LOG] = portal.answers[LOG][1:]
    with FULL.open("w") as full:
        assert qm(portal, tmp_path, *typed, into=full.fileno()) == (
            2,
            "The output cannot be written: No space left on device.\n",
        )
