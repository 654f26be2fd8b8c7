"""Sealing the secrets of channels under the secret key of now, after it was changed."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from notices.channels.actions import seal_anew
from notices.models import Channel
from notices.sealing import Unreadable


class Command(BaseCommand):
    """Says how many lay under a key of before, names channels whose key is missing, and fails if there are any."""

    help = (
        "Seal addresses and secrets of channels under QM_SECRET_KEY, so that none needs a key of "
        "QM_SECRET_KEY_FALLBACKS any more."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError when a channel lies under a key that the portal does not have."""
        sealed, unreadable = 0, []
        for channel in Channel.objects.all():
            try:
                sealed += seal_anew(channel.pk)
            except Unreadable:
                unreadable.append(channel.name)
        self.stdout.write(
            f"{sealed} of the addresses and secrets of channels lay under a key of before, and do no more."
        )
        if unreadable:
            raise CommandError(
                f"No key reads what is kept of {', '.join(unreadable)}. Add the key of that time to "
                "QM_SECRET_KEY_FALLBACKS and run this again, or give their addresses and secrets again."
            )
