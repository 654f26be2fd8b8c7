"""`python -m …` under libfaketime, whose clock_nanosleep refuses the deadlines that Python's sleep gives it."""

import runpy
import select
import sys
import time


def _sleep(seconds: float) -> None:
    select.select([], [], [], seconds)


if __name__ == "__main__":
    time.sleep = _sleep  # type: ignore[assignment]
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
