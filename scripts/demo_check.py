"""The main job against a demo of its own, as real clients do it: `make demo-check`.

People use forms, scripts use the API, and what became true is asked of the cluster, never of the portal's database.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from scripts.demo import start
from scripts.demo_processes import Demo, DemoFailed, free_port
from scripts.documents import DOCUMENTS, run
from scripts.expecting import StepFailed
from scripts.git_host import GitHost, git_host
from scripts.how_tos import HowTos
from scripts.main_job import MainJob


def main() -> int:
    """Start a demo on a free port with data of its own, play every step, and end it; 0 when all went well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--keep", type=Path, help="keep the demo's data and logs in this folder"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="quartermaster-check-") as folder:
        demo = Demo((options.keep or Path(folder)).resolve(), free_port())
        try:
            timed("the demo starts", lambda: start(demo))
            timed("JupyterHub begins, beside everything else", demo.start_hub)
            job = MainJob(demo)
            for words, step in job.steps():
                timed(words, step)
            demo.stop()
            documents(Path(folder))
        except (DemoFailed, StepFailed, LookupError) as failure:
            # The reason comes last: of a long output the end is what is read first, and often all that is kept.
            print(f"{demo.tails()}\nmain job: failed\n{failure}", flush=True)
            return 1
        finally:
            demo.stop()
    print("main job: ok", flush=True)
    return 0


def documents(folder: Path) -> None:
    """README, tutorial and how-tos on a demo of their own, where nobody has asked for anything yet."""
    data = (folder / "documents").resolve()
    with git_host(data) as host:
        on_a_demo(Demo(data, free_port(), host.settings), host, folder / "how-tos")


def on_a_demo(demo: Demo, host: GitHost, folder: Path) -> None:
    """All of them, beside a Git host."""
    try:
        timed("another demo starts", lambda: start(demo))
        reader = MainJob(demo)
        timed("Ada and Priya sign in", reader.sign_in)
        timed("Elena signs in", partial(reader.sign_in_as, "Elena"))
        timed("they make tokens", reader.make_tokens)
        timed("Climate comes on board", reader.onboard)
        for path in DOCUMENTS:
            timed(
                f"every command of {path.name}",
                partial(run, path, url=demo.url, tokens=reader.tokens),
            )
        for words, step in HowTos(reader, host, folder).steps():
            timed(words, step)
    except (DemoFailed, StepFailed, LookupError):
        print(demo.tails(), flush=True)
        raise
    finally:
        demo.stop()


def timed(words: str, step: Callable[[], str | None]) -> None:
    """Play one step and print its words, what it found and its time."""
    started = time.monotonic()
    found = step()
    print(
        f"{time.monotonic() - started:7.2f} s  {words}{f': {found}' if found else ''}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
