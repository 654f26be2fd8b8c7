"""Prints which small changes of the pure core its own tests do not notice, and the share that they do."""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from scripts.mutants.areas import OWN_TESTS
from scripts.mutants.running import OwnTestsFail, Result, Target, preload, try_mutants
from scripts.packages import ROOT

ENOUGH = 0.9


def main() -> int:
    """Try all modules, or those whose path begins with --only; 1 when the tests of one notice less than enough."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", default="", help="the path of a module, or how it begins"
    )
    parser.add_argument(
        "--tests",
        nargs="*",
        help="the tests of the module, where they are not the listed ones",
    )
    parser.add_argument(
        "--root", type=Path, default=ROOT, help="the folder that both paths start from"
    )
    given = parser.parse_args()
    own_tests = {given.only: given.tests} if given.tests else OWN_TESTS
    targets = [
        Target(given.root, path, own_tests[path])
        for path in own_tests
        if path.startswith(given.only)
    ]
    if not targets:
        print(
            f"no module begins with {given.only}; these are tried: {', '.join(OWN_TESTS)}"
        )
        return 2
    sys.path.insert(0, str(given.root))
    preload(targets[0])
    shares = []
    with TemporaryDirectory(prefix="mutants-") as folder:
        # A process that is ended tidies nothing up: what it leaves goes with the folder.
        tempfile.tempdir = folder
        for target in targets:
            began = time.monotonic()
            try:
                result = try_mutants(target, jobs=os.cpu_count() or 1)
            except OwnTestsFail as failed:
                print(failed)
                return 2
            shares.append(result.share)
            print(
                "\n".join(lines(target, result, time.monotonic() - began)), flush=True
            )
    return 0 if min(shares) >= ENOUGH else 1


def lines(target: Target, result: Result, seconds: float) -> list[str]:
    """What is printed of a module: how many of its mutants its tests killed, and each that survived."""
    killed = result.number - len(result.survivors)
    head = f"{target.path}: {killed} of {result.number} killed ({result.share:.2f}) in {seconds:.0f} s"
    return [
        head,
        *(
            f"  {target.path}:{each.line}\n    - {each.before}\n    + {each.after}"
            for each in result.survivors
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
