"""Says what `make live-test` could not check: each test that was skipped or never began, with why, and how many."""

from typing import Any

import pytest


class Told:
    """What was skipped in this run, left out of it, or not reached."""

    def __init__(self) -> None:
        self.skipped: list[tuple[str, str]] = []
        self.waiting: dict[str, None] = {}

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Keep what was left out by its name."""
        self.skipped += [
            (_words(item.nodeid), "left out by what was asked for") for item in items
        ]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Everything that is to run."""
        self.waiting = {item.nodeid: None for item in session.items}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Strike off what has ended, and keep the words of a skip."""
        if report.when == "call" or report.outcome != "passed":
            self.waiting.pop(report.nodeid, None)
        if report.skipped and isinstance(report.longrepr, tuple):
            self.skipped.append(
                (_words(report.nodeid), report.longrepr[2].removeprefix("Skipped: "))
            )

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """One line for each, and one for all."""
        terminalreporter.section("what was not checked")
        cut_off = [(_words(name), "the test was cut off") for name in self.waiting]
        for name, why in (*self.skipped, *cut_off):
            terminalreporter.write_line(f"not checked: {name} ({why})")
        counts = {
            kind: len(terminalreporter.stats.get(kind, []))
            for kind in ("passed", "failed", "error")
        }
        terminalreporter.write_line(
            f"live test: {counts['passed']} hold, {counts['failed'] + counts['error']} do not, "
            f"{len(self.skipped) + len(cut_off)} not checked"
        )


def _words(node: str) -> str:
    return node.rpartition("::")[2].removeprefix("test_").replace("_", " ")


def pytest_configure(config: pytest.Config) -> None:
    """Listen to this run."""
    config.pluginmanager.register(Told(), "what-was-not-checked")
