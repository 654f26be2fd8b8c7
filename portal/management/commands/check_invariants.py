"""Does everything hold that must always hold? By hand, after a fault, and every night."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from checks.findings import PROMISES
from checks.invariants import check, tell


class Command(BaseCommand):
    """A line for each finding with what to do, and exit status 1 when there is one."""

    help = "Check I1 to I16 (docs/how-to/check-invariants.md) against the database and the clusters."

    def add_arguments(self, parser: CommandParser) -> None:
        """--database-only leaves the clusters alone."""
        parser.add_argument(
            "--database-only", action="store_true", help="do not call the clusters"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError when a promise does not hold."""
        report = check(now=timezone.now(), clusters=not options["database_only"])
        tell(report)
        broken = report.by_promise()
        for promise, words in PROMISES.items():
            if promise in report.checked:
                said = f"{broken[promise]} found" if promise in broken else "holds"
                self.stdout.write(f"{promise:4} {words}: {said}")
        for note in report.notes:
            self.stdout.write(f"     {note}")
        for finding in report.findings:
            self.stdout.write(str(finding))
        if report.findings:
            raise CommandError(
                f"{len(report.findings)} found, of {len(broken)} promises."
            )
