"""Add the clusters and flavors that `QM_FLEET_FILE` declares; harmless to repeat."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from fleet.declared import declare
from web.refusals import Refused


class Command(BaseCommand):
    """Run once per start, after the migrations."""

    help = "Add the clusters and flavors that QM_FLEET_FILE declares."

    def handle(self, *args: Any, **options: Any) -> None:
        """Read the file, if one is named, and say what was added."""
        if settings.ENV.fleet_file is None:
            self.stdout.write("QM_FLEET_FILE names no file: nothing to declare.")
            return
        try:
            declared = json.loads(settings.ENV.fleet_file.read_text(encoding="utf-8"))
            for line in declare(declared["clusters"]):
                self.stdout.write(line)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CommandError(f"{settings.ENV.fleet_file}: {error!r}") from error
        except Refused as refusal:
            raise CommandError(
                f"{refusal.field or 'The file'}: {refusal.message}"
            ) from refusal
