"""Named points at which a test can end the process as a crash would: `FAILPOINT=name:n` ends it at the n-th pass.

`FAILPOINT=name:always` ends it at every pass, as a poisonous message does, and `FAILPOINT=name/17:always` at those of
one thing alone. Without the variable a point costs a look into the environment and does nothing.
"""

import os
from collections import Counter
from collections.abc import Callable

KILLED = 137  # as a shell says of a process that SIGKILL ended
_passes: Counter[str] = Counter()


def _die() -> None:
    os._exit(KILLED)


# What happens at the point; a test that plays a crash inside its own process puts something else here.
strike: Callable[[], None] = _die


def reach(name: str, *, of: object = "") -> None:
    """Pass a named point; ends the process at once, without clean-up, when the environment names this pass."""
    wanted, _, number = os.environ.get("FAILPOINT", "").partition(":")
    if wanted not in (name, f"{name}/{of}"):
        return
    _passes[name] += 1
    if number == "always" or _passes[name] == int(number or 1):
        strike()


def forget() -> None:
    """Count the passes from the beginning again."""
    _passes.clear()
