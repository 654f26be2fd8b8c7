"""I13: nothing that is a secret stands in a record, a message, or an answer that is kept."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from django.conf import settings
from django.db.models import Model, Q, TextField
from django.db.models.functions import Cast
from pydantic import SecretStr

from accounts.models import Idempotency
from audit.models import Event
from checks.findings import Finding
from fleet.models import Cluster
from notices.models import Channel, Delivery, Notice
from notices.sealing import Unreadable
from provisioning.models import Tenancy

# A personal token, the secret of a webhook, a JSON web token and a private key, wherever they come from.
SHAPES = (
    r"qm_[0-9a-f]{8}_[A-Za-z0-9_-]{43}",
    r"whsec_[A-Za-z0-9+/]{43}=",
    r"eyJ[A-Za-z0-9_-]{16,}\.eyJ[A-Za-z0-9_-]{16,}\.",
    "-----BEGIN [A-Z ]*PRIVATE KEY",
)
PLACES: tuple[tuple[type[Model], str, str], ...] = (
    (Event, "details", "audit event"),
    (Notice, "message", "notice"),
    (Notice, "event", "notice"),
    (Delivery, "last_error", "delivery"),
    (Tenancy, "conditions", "tenancy"),
    (Tenancy, "objects_seen", "tenancy"),
    (Cluster, "message", "cluster"),
    (Idempotency, "body", "kept answer"),
)
SHORTEST = 8
# A cluster's token is far longer; a shorter one may well be a word.
SHORTEST_TOKEN = 16
PERSONAL_ENDS = (
    "Change the secret where it comes from, then tell the developers how it got there."
)


def no_secrets(now: datetime) -> Iterator[Finding]:
    """I13: neither one of the installation's own secrets nor anything of the shape of one."""
    secrets = [value for value in _configured() if len(value) >= SHORTEST]
    for model, column, name in PLACES:
        wrong = Q(text__regex="|".join(SHAPES))
        for secret in secrets:
            wrong |= Q(text__contains=secret)
        rows = (
            model._default_manager.annotate(text=Cast(column, TextField()))
            .filter(wrong)
            .order_by("pk")
        )
        for pk in rows.values_list("pk", flat=True):
            yield Finding(
                "I13", f"{name} {pk}", f"Its {column} hold a secret.", PERSONAL_ENDS
            )


def _configured() -> set[str]:
    found = {*_addresses(), *settings.SECRET_KEY_FALLBACKS}
    for name in type(settings.ENV).model_fields:
        value = getattr(settings.ENV, name)
        if isinstance(value, SecretStr):
            text = value.get_secret_value()
            # Of an address only the password is secret; without one there is none.
            found.add(
                (urlsplit(text).password or "") if name.endswith("_url") else text
            )
    return found | _tokens()


def _addresses() -> Iterator[str]:
    for channel in Channel.objects.all():
        # What nobody can read any more cannot have been told to anybody by us either.
        with suppress(Unreadable):
            yield channel.url


def _tokens() -> set[str]:
    """The bearer tokens of the clusters in use; a file that cannot be read holds none we could leak."""
    found: set[str] = set()
    for name in Cluster.objects.exclude(kubeconfig="").values_list(
        "kubeconfig", flat=True
    ):
        try:
            users = yaml.safe_load(
                (Path(settings.ENV.kubeconfig_dir) / Path(name).name).read_text()
            )["users"]
            tokens = {str(user["user"].get("token", "")) for user in users}
        except (OSError, KeyError, TypeError, AttributeError, yaml.YAMLError):
            continue
        found |= {token for token in tokens if len(token) >= SHORTEST_TOKEN}
    return found
