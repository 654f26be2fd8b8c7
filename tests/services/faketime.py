"""A wrong clock for one process, by Debian's libfaketime; what measures spans stays right, as on a real machine."""

import os
from collections.abc import Mapping
from pathlib import Path


def wrong_clock(time: str) -> Mapping[str, str]:
    """The environment of a program whose clock is off: `+10m`, `-1d`, or `@2026-10-25 02:59:50` when it starts.

    It counts for a program that is started, not for one that is forked.
    """
    found = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
    if found is None:
        raise FileNotFoundError("libfaketime is not installed: run scripts/services.sh")
    preloaded = " ".join(filter(None, [str(found), os.environ.get("LD_PRELOAD", "")]))
    return {
        "LD_PRELOAD": preloaded,
        "FAKETIME": time,
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
