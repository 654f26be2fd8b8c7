"""What the sandbox carries out of a container's command: it sleeps, writes what it echoes, and exits. Pure."""

import re
from collections.abc import Mapping

from sandbox.kubernetes.causes import part
from sandbox.kubernetes.store import Obj

SLEEP = re.compile(r"\bsleep\s+([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhd]?)\b", re.ASCII)
ECHO = re.compile(r"\becho\s+(?:'([^']*)'|\"([^\"]*)\")")
EXIT = re.compile(r"\bexit\s+([0-9]{1,3})\b", re.ASCII)
UNITS: Mapping[str, float] = {
    "": 1.0,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
# What a node keeps of a log as the last words of a container that failed (Kubernetes: 2,048 bytes or 80 lines).
LAST_BYTES, LAST_LINES = 2048, 80


def seconds(pod: Obj) -> float | None:
    """How long the containers of a pod sleep; None where none does."""
    found = next(filter(None, map(SLEEP.search, _commands(pod))), None)
    return float(found[1]) * UNITS[found[2]] if found else None


def exit_code(pod: Obj) -> int:
    """What the containers of a pod exit with."""
    found = next(filter(None, map(EXIT.search, _commands(pod))), None)
    return int(found[1]) if found else 0


def echoed(pod: Obj) -> tuple[str, ...]:
    """The lines that the containers of a pod echo which exit with an error; what others echo is not carried out."""
    if not exit_code(pod):
        return ()
    return tuple(
        one[1] or one[2] or "" for text in _commands(pod) for one in ECHO.finditer(text)
    )


def last_words(lines: tuple[str, ...]) -> str:
    """What a node keeps of these lines when a container fails."""
    text = "".join(f"{one}\n" for one in lines[-LAST_LINES:])
    return text.encode()[-LAST_BYTES:].decode(errors="ignore")


def _commands(pod: Obj) -> list[str]:
    """The command of each container, its words with blanks between them."""
    return [
        " ".join(map(str, [*(one.get("command") or ()), *(one.get("args") or ())]))
        for one in part(dict(pod), "spec").get("containers") or ()
    ]
