"""Where `scripts/hub.sh` puts the hub, apart from the environment of everything else, and the call of that script."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".hub" / "bin" / "python"
PROXY = (
    ROOT
    / ".hub"
    / "proxy"
    / "node_modules"
    / "configurable-http-proxy"
    / "bin"
    / "configurable-http-proxy"
)


def install() -> None:
    """Install what is not there yet, with a line of progress every few seconds; raises CalledProcessError."""
    # What runs beside it is used meanwhile, and goes first.
    subprocess.run(["nice", str(ROOT / "scripts" / "hub.sh")], check=True)  # noqa: S603, S607
