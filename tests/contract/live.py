"""What `make live-test` says of the cluster under test, and what it must not leave there."""

import os
from pathlib import Path

KUBECONFIG, PREFIX, MADE = "QM_LIVE_KUBECONFIG", "QM_LIVE_PREFIX", "QM_LIVE_MADE"


def kubeconfig() -> Path | None:
    """The kubeconfig of a real cluster, None for the sandbox. Never the caller's own KUBECONFIG by accident."""
    given = os.environ.get(KUBECONFIG)
    return Path(given) if given else None


def prefix() -> str:
    """What the name of everything that is made begins with."""
    return os.environ.get(PREFIX, "qm-live-000000")


def note(kind: str, name: str) -> None:
    """Write down an object without the prefix that was made, before it is made: it is taken away at the end."""
    if made := os.environ.get(MADE):
        with Path(made).open("a") as file:
            file.write(f"{kind} {name}\n")
