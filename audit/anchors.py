"""Once a day the head of the log leaves the database: signed, by mail and into a folder."""

import logging
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path

from django.conf import settings

from audit import signing
from audit.chain import Checkpoint
from audit.models import Anchor, Head
from connectors.errors import ConnectorError
from connectors.mail import Letter, Mail

logger = logging.getLogger(__name__)
MAX_ANCHORS_PER_RUN = 40
TEXT = """The audit log of {log} ended with event {seq} when this was signed.

{anchor}

Keep this mail. Whoever can change the portal's database cannot change it, and `manage.py verify_audit_log` compares the
log with the line above, saved as a file.
"""


@dataclass(frozen=True)
class Ways:
    """Where anchors go: to addresses, while there is a mail server, and into a folder; either may be missing."""

    mail: Mail | None
    to: tuple[str, ...]
    folder: Path | None


def leave(ways: Ways, *, log: str, now: datetime) -> None:
    """Make the anchor of the day unless there is one, and leave every anchor wherever it has not arrived yet.

    What cannot be left now is logged and tried again by the next run.
    """
    if not ways.to and ways.folder is None:
        return
    _anchor_of_the_day(log=log, now=now)
    if ways.folder is not None:
        for anchor in Anchor.objects.filter(stored_at=None)[:MAX_ANCHORS_PER_RUN]:
            if _store(anchor, ways.folder):
                Anchor.objects.filter(day=anchor.day).update(stored_at=now)
    if ways.to and ways.mail is not None:
        for anchor in Anchor.objects.filter(mailed_at=None)[:MAX_ANCHORS_PER_RUN]:
            if _mail(anchor, ways.mail, ways.to, log=log, now=now):
                Anchor.objects.filter(day=anchor.day).update(mailed_at=now)


def trusted_keys() -> list[str]:
    """The public keys of this installation: of its secret key, and of those before it."""
    secrets = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return [signing.public(signing.key_from(secret)) for secret in secrets]


def _anchor_of_the_day(*, log: str, now: datetime) -> None:
    head = Head.objects.filter(pk=1, seq__gt=0).first()
    if head is None or Anchor.objects.filter(day=now.date()).exists():
        return
    text = signing.sign(
        Checkpoint(head.seq, head.hash),
        log=log,
        at=now,
        key=signing.key_from(settings.SECRET_KEY),
    )
    Anchor.objects.get_or_create(
        day=now.date(), defaults={"seq": head.seq, "text": text}
    )


def _store(anchor: Anchor, folder: Path) -> bool:
    """Write the anchor's file; one that is there is never written over."""
    path, content = folder / f"audit-{anchor.day}.json", f"{anchor.text}\n"
    try:
        with suppress(FileExistsError), path.open("x") as file:
            file.write(content)
        if path.read_text() == content:
            return True
        logger.warning(
            "another anchor of the audit log has this name", extra={"file": path.name}
        )
    except OSError as error:
        logger.warning(
            "an anchor of the audit log cannot be stored",
            extra={"error": type(error).__name__},
        )
    return False


def _mail(
    anchor: Anchor, mail: Mail, to: tuple[str, ...], *, log: str, now: datetime
) -> bool:
    host = log.partition("://")[2].partition("/")[0].partition(":")[0]
    text = TEXT.format(log=log, seq=anchor.seq, anchor=anchor.text)
    for address in to:
        letter = Letter(
            to=address,
            subject=f"Audit log on {anchor.day}: event {anchor.seq}",
            text=text,
            html=f"<pre>{escape(text)}</pre>",
            message_id=f"audit-{anchor.day}@{host}",
        )
        try:
            mail.send(letter, now=now)
        except ConnectorError as error:
            logger.warning(
                "an anchor of the audit log cannot be mailed",
                extra={"error": str(error)},
            )
            return False
    return True
