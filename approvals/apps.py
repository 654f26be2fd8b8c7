"""The approvals package as a Django app."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import pre_delete


class ApprovalsConfig(AppConfig):
    name = "approvals"

    def ready(self) -> None:
        """Keep kinds of GPU that were asked for without a key: a reservation names its kind in its spec alone."""
        pre_delete.connect(
            _keep_what_was_reserved, sender="fleet.Flavor", dispatch_uid="approvals"
        )


def _keep_what_was_reserved(*, instance: Any, **_: Any) -> None:
    from approvals.models import Request  # models are there only now
    from web.refusals import Conflict

    if Request.objects.filter(spec__nodes_for=instance.key).exists():
        raise Conflict(
            f"Machines were asked for as nodes of {instance.kind} here: it stays for their history.",
            code="was_used",
        )
