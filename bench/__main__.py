"""Measures the portal against its peers and floors in one run: a table, and results.json. 1 when a target is missed."""

import argparse
import sys
from importlib import import_module
from pathlib import Path

from bench import results, rig
from bench.results import Measured

RESULTS = Path(__file__).parent / "results.json"
# Each of these modules has a `measure(rig)`; they need the portal's Django, so they are imported when it is set up.
BENCHMARKS = {
    "B1": "api_list",
    "B2": "api_detail",
    "B3": "last_page",
    "B5": "approver_queue",
    "B8": "one_budget",
    "B9": "judging",
    "B10": "waking",
    "B11": "stepping",
    "B12": "provision",
    "B13": "drift",
    "B15": "recovery",
    "B20": "team_work",
    "B21": "submitting",
    "B22": "following",
    "B23": "explaining",
}


def main(arguments: list[str] | None = None) -> int:
    """Measure what is asked for; 1 when a target is missed or something could not be measured, 2 for no such name."""
    asked = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    asked.add_argument(
        "--only", default="", help="names with commas between them, such as B5"
    )
    try:
        names = results.chosen(
            asked.parse_args(arguments).only.split(","), list(BENCHMARKS)
        )
    except ValueError as strange:
        print(f"bench: {strange}", file=sys.stderr)
        return 2
    measured, failed = measure(names)
    print(f"\n{results.table(measured)}" if measured else "")
    print(f"\nbench: {len(measured)} of {len(names)} measured, {_missed(measured)}")
    return 1 if failed or not all(each.is_met for each in measured.values()) else 0


def measure(names: list[str]) -> tuple[dict[str, Measured], list[str]]:
    """What was measured, and the names of what could not be; a run that is ended early keeps what it has measured."""
    measured, failed = dict[str, Measured](), list[str]()
    results.write(RESULTS, measured)
    with rig.started() as on:
        for name in names:
            print(f"bench: {name} begins", flush=True)
            rig.empty_database(on)
            try:
                measured[name] = import_module(f"bench.{BENCHMARKS[name]}").measure(on)
            except Exception as error:
                print(f"bench: {name} could not be measured: {error}", file=sys.stderr)
                failed.append(name)
            else:
                results.write(RESULTS, measured)
                print(results.table({name: measured[name]}), flush=True)
    return measured, failed


def _missed(measured: dict[str, Measured]) -> str:
    missed = [name for name, each in measured.items() if not each.is_met]
    return f"targets missed: {', '.join(missed)}" if missed else "no target missed"


if __name__ == "__main__":
    sys.exit(main())
