"""Connect the demo's JupyterHub to a cluster, as its platform lead does by page; run again it changes nothing."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from accounts.models import User
from fleet.models import Cluster
from notebooks.hubs import actions
from notebooks.profiles.idle import Reclaim
from portal.management.commands.seed_demo import PRIYA


class Command(BaseCommand):
    """Tell the portal where the hub is, and the hub by which key it calls the portal."""

    help = "Connect the demo's JupyterHub."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which hub of which cluster, and where its key goes."""
        parser.add_argument("cluster")
        parser.add_argument("--address", required=True)
        parser.add_argument("--public-address", required=True)
        parser.add_argument("--key-file", type=Path, required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        """Connect it, and make a key where the hub has none yet."""
        lead, now = User.objects.get(oid=PRIYA), timezone.now()
        hub = actions.connect(
            Cluster.objects.get(name=options["cluster"]),
            address=options["address"],
            public_address=options["public_address"],
            token_file="token",  # noqa: S106 - the file's name
            reclaim=Reclaim.ON,
            by=lead,
            now=now,
        )
        if not hub.key_prefix:
            _, key = actions.make_key(hub, by=lead, now=now)
            options["key_file"].write_text(key, encoding="utf-8")
