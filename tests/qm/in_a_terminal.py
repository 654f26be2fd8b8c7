"""A real terminal before a real command, with somebody who answers what it asks."""

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from scripts.packages import ROOT
from tests.qm.misbehaving import Misbehaving


def in_a_terminal(
    portal: Misbehaving, home: Path, *typed: str, answer: bytes
) -> tuple[int, str]:
    """Run a command with a terminal before it, and type an answer once it asks; its exit code and what it shows."""
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "qm", *typed],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "QM_URL": portal.url,
            "QM_TOKEN": "qm_secret",
        },
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown, is_asked = b"", False
    # The other end is gone once the command has ended.
    with suppress(OSError):
        while part := os.read(ours, 4096):
            shown += part
            if b"[y/N]" in shown and not is_asked:
                is_asked = True
                os.write(ours, answer)
    os.close(ours)
    return running.wait(timeout=30), shown.decode().replace("\r\n", "\n")
