"""The tool that changes a module finds out whether the module's tests notice."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.mutants.changing import mutants
from scripts.packages import ROOT

MODULE = '''"""How many may come in."""

MOST = {"guests": 10, "children": 5}


def may_come(kind: str, number: int) -> bool:
    """Whether so many of a kind may come."""
    return number <= MOST[kind]
'''
HEAD = "import pytest\nfrom toy_of_mutants import may_come\n\n"
WEAK = HEAD + 'def test_one_may_come():\n    assert may_come("guests", 1)\n'
STRONG = HEAD + (
    '@pytest.mark.parametrize(("kind", "most"), [("guests", 10), ("children", 5)])\n'
    "def test_as_many_as_there_is_room_for_may_come(kind, most):\n"
    "    assert may_come(kind, most) is True\n"
    "    assert may_come(kind, most + 1) is False\n"
)
WRONG = HEAD + 'def test_nobody_may_come():\n    assert not may_come("guests", 1)\n'


def tried(folder: Path, tests: str) -> subprocess.CompletedProcess[str]:
    """The command, on a module in a folder of its own with these tests."""
    (folder / "toy_of_mutants.py").write_text(MODULE)
    (folder / "test_toy.py").write_text(tests)
    options = [
        "--root",
        str(folder),
        "--only",
        "toy_of_mutants.py",
        "--tests",
        "test_toy.py",
    ]
    argv = [sys.executable, "-m", "scripts.mutants", *options]
    return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_a_strong_test_notices_every_change(tmp_path: Path) -> None:
    done = tried(tmp_path, STRONG)

    assert (
        re.sub(r"\d+ s$", "1 s", done.stdout.strip())
        == "toy_of_mutants.py: 6 of 6 killed (1.00) in 1 s"
    )
    assert done.returncode == 0


@pytest.mark.slow
def test_a_weak_test_lets_changes_of_a_function_and_of_a_table_live(
    tmp_path: Path,
) -> None:
    done = tried(tmp_path, WEAK)

    assert done.stdout.splitlines()[1:] == [
        "  toy_of_mutants.py:3",
        "    - 'children'",
        "    + 'children-other'",
        "  toy_of_mutants.py:3",
        "    - 10",
        "    + 11",
        "  toy_of_mutants.py:3",
        "    - 5",
        "    + 6",
        "  toy_of_mutants.py:8",
        "    - return number <= MOST[kind]",
        "    + return number < MOST[kind]",
    ]
    assert done.returncode == 1


@pytest.mark.slow
def test_changes_of_a_function_that_no_test_calls_live(tmp_path: Path) -> None:
    uncalled = HEAD + (
        "from toy_of_mutants import MOST\n\n"
        'def test_so_many_may_come():\n    assert MOST == {"guests": 10, "children": 5}\n'
    )
    done = tried(tmp_path, uncalled)

    assert done.stdout.splitlines()[1:] == [
        "  toy_of_mutants.py:8",
        "    - return number <= MOST[kind]",
        "    + return None",
        "  toy_of_mutants.py:8",
        "    - return number <= MOST[kind]",
        "    + return number < MOST[kind]",
    ]


@pytest.mark.slow
def test_tests_that_fail_without_a_change_measure_nothing(tmp_path: Path) -> None:
    done = tried(tmp_path, WRONG)

    assert "toy_of_mutants.py" in done.stdout
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("source", "changed"),
    [
        ("a = b < c", ["a = b <= c"]),
        ("a = b and c", ["a = b or c", "a = not b and c", "a = b and (not c)"]),
        ("a = b + c", ["a = b - c"]),
        ("a = not b", ["a = b"]),
        ("a = True", ["a = False"]),
        ("a = '10'", ["a = '110'"]),
        ("a = min(b)", ["a = max(b)"]),
        ("def a():\n    return b", ["def a():\n    return None"]),
        ("a.append(b)", ["pass"]),
        ("a = b if c else d", ["a = b if not c else d"]),
    ],
)
def test_what_is_tried_in_its_place(source: str, changed: list[str]) -> None:
    assert [ast.unparse(each.tree) for each in mutants(source)] == changed


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring."""',
        "a: int",
        "from b import c",
        "a = 'A sentence for people.'",
        "a = f'{b}' + c",
        "a = None",
        "__all__ = ['a', 'b']",
        "@dataclass(frozen=True, kw_only=True, slots=True)\nclass A:\n    b: int",
        "if TYPE_CHECKING:\n    from b import c",
    ],
)
def test_what_does_not_decide_anything_is_left_as_it_is(source: str) -> None:
    assert mutants(source) == []
