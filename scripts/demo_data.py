"""Whether what an earlier demo left in its folder goes with the portal of now.

A migration that was changed after it was applied is not applied again: the database would lack what the portal reads.
"""

import hashlib
import json
from collections.abc import Iterable
from itertools import count
from pathlib import Path

NOTE, DATABASE = "migrations.json", "portal.sqlite3"


def note_migrations(data: Path, migrations: Iterable[Path]) -> None:
    """Write down beside a demo's database by which migrations it was made."""
    (data / NOTE).write_text(json.dumps(_digests(migrations), indent=1))


def put_aside(data: Path, migrations: Iterable[Path]) -> Path | None:
    """Move the data away that this version cannot read, and say where it is now; None where it can stay."""
    if not (data / DATABASE).exists() or _goes_with(data / NOTE, _digests(migrations)):
        return None
    names = (data.with_name(f"{data.name}-{number}") for number in count(1))
    return data.rename(next(name for name in names if not name.exists()))


def _goes_with(note: Path, now: dict[str, str]) -> bool:
    """Whether all that was applied stands as it was; what has come since is applied on top of it."""
    try:
        applied: dict[str, str] = json.loads(note.read_text())
    except (OSError, ValueError):
        return False
    return applied.items() <= now.items()


def _digests(migrations: Iterable[Path]) -> dict[str, str]:
    return {
        f"{path.parent.parent.name}/{path.stem}": hashlib.sha256(
            path.read_bytes()
        ).hexdigest()
        for path in migrations
    }
