"""Who waits for a demo is told how far it has come, in a terminal and in a log alike."""

import re
import subprocess
import sys
import threading

import pytest

from scripts.packages import ROOT
from scripts.progress import follow


def test_each_step_is_named_with_its_place_and_the_seconds() -> None:
    said: list[str] = []
    follow([("one", lambda: None), ("two", lambda: None)], say=said.append)
    assert [re.sub(r"[\d.]+ s", "0 s", line).split() for line in said] == [
        ["0", "s", "1", "of", "2", "one"],
        ["0", "s", "2", "of", "2", "two"],
    ]


def test_a_step_that_takes_long_is_not_silent() -> None:
    said: list[str] = []
    again = threading.Event()

    def say(line: str) -> None:
        said.append(line)
        if "goes on" in line:
            again.set()

    follow([("long", lambda: again.wait(30))], say=say, quiet=0.001)
    assert any("1 of 1  goes on" in line for line in said)


def test_a_step_that_fails_ends_it() -> None:
    said: list[str] = []
    with pytest.raises(ZeroDivisionError):
        follow([("fails", lambda: 1 / 0), ("never", lambda: None)], say=said.append)
    assert len(said) == 1


def test_it_is_read_at_once_where_the_output_is_a_pipe() -> None:
    code = "from scripts.progress import *\nfollow([('one', lambda: None), ('two', input)], say=print_line)"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert "1 of 2  one" in process.stdout.readline()
        assert "2 of 2  two" in process.stdout.readline()
        process.communicate("\n", timeout=30)
