"""The sandbox's secrets: made at random once per data directory, readable by their owner only."""

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Credentials:
    """Secrets by name; asking for an unknown name makes one and keeps it in the file."""

    path: Path
    known: dict[str, str]

    @classmethod
    def open(cls, path: Path) -> "Credentials":
        """Read the file, or start with none."""
        return cls(
            path, json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        )

    def secret(self, name: str) -> str:
        """Return the secret of this name."""
        if name not in self.known:
            self.known[name] = secrets.token_urlsafe(32)
            write_private(self.path, json.dumps(self.known, indent=1))
        return self.known[name]


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step, with mode 0600: a reader sees the old text or the new one."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)
