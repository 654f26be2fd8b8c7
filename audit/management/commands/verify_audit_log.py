"""`manage.py verify_audit_log`: walk the whole log, and compare it with anchors that were kept elsewhere."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from audit import anchors, signing
from audit.chain import Checkpoint
from audit.models import verify


class Command(BaseCommand):
    """Ends with 0 when every event stands as it was written and as every anchor says."""

    help = "Walk the whole audit log, and compare it with its head and with anchors."

    def add_arguments(self, parser: CommandParser) -> None:
        """Anchors, and whom to believe."""
        parser.add_argument(
            "--anchor",
            action="append",
            default=[],
            type=Path,
            help="a file, or a folder of files",
        )
        parser.add_argument(
            "--key",
            action="append",
            default=[],
            help="a public key to trust, instead of this installation's own",
        )
        parser.add_argument(
            "--show-key",
            action="store_true",
            help="print this installation's public key and end",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print what was found; raises CommandError when something does not fit."""
        if options["show_key"]:
            self.stdout.write(anchors.trusted_keys()[0])
            return
        trusted = options["key"] or anchors.trusted_keys()
        known = [_read(path, trusted) for path in _files(options["anchor"])]
        verdict = verify(known=known)
        if verdict.broken_at is not None:
            raise CommandError(
                f"The log is broken at event {verdict.broken_at}: {verdict.reason}"
            )
        self.stdout.write(
            f"{verdict.reason} {len(known)} anchors agree." if known else verdict.reason
        )


def _files(given: list[Path]) -> list[Path]:
    """Every file that was named, and those of every folder."""
    return [
        file
        for path in given
        for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])
    ]


def _read(path: Path, trusted: list[str]) -> Checkpoint:
    try:
        return signing.read(path.read_text(), trusted=trusted)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{path}: it cannot be read.") from error
    except signing.NotGenuine as error:
        raise CommandError(f"{path}: {error}") from error
