"""Named points at which a test can end the process as a crash would: `FAILPOINT=name:n` ends it at the n-th pass."""

import os
from collections import Counter

_passes: Counter[str] = Counter()


def reach(name: str) -> None:
    """Pass a named point; ends the process at once, without clean-up, when the environment names this pass."""
    wanted, _, number = os.environ.get("FAILPOINT", "").partition(":")
    if wanted != name:
        return
    _passes[name] += 1
    if _passes[name] == int(number or 1):
        os._exit(137)
