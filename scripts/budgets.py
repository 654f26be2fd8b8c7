"""The size budgets: files, functions, and how much test there is to how much code."""

import ast
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

from scripts.packages import PACKAGES, ROOT, python_files

LONGEST_FILE = 400
MEDIAN_FILE = 80
LONGEST_FUNCTION = 40
TEST_TO_CODE = 1.2


def lines(path: Path) -> int:
    """How many lines a file has."""
    return len(path.read_text().splitlines())


def long_functions(path: Path) -> Iterator[str]:
    """Each function of a file that is as long as the limit or longer, its docstring included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            length = node.end_lineno - node.lineno + 1
            if length >= LONGEST_FUNCTION:
                yield f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has {length} lines"


def broken(code: list[Path], tests: list[Path]) -> list[str]:
    """One sentence for each budget that is exceeded."""
    found = [
        f"{path.relative_to(ROOT)}: {lines(path)} lines"
        for path in code + tests
        if lines(path) > LONGEST_FILE
    ]
    for path in code + tests:
        found.extend(long_functions(path))
    return found


def median_lines(code: list[Path]) -> float:
    """The middle length of all files that say something."""
    return statistics.median([count for path in code if (count := lines(path)) > 0])


def main() -> int:
    """Print the figures and what exceeds them; 1 when anything does."""
    code, tests = python_files("manage.py", *PACKAGES), python_files("tests")
    code_lines, test_lines = sum(map(lines, code)), sum(map(lines, tests))
    print(f"      code {code_lines} lines in {len(code)} files, median {median_lines(code):g}", end=" ")
    print(f"(target below {MEDIAN_FILE})")
    ratio = test_lines / code_lines
    print(f"      tests {test_lines} lines, {ratio:.2f} for one of code (target {TEST_TO_CODE})")
    problems = broken(code, tests)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
