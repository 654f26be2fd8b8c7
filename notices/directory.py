"""Telling platform leads that the directory was stopped: what is found out below this package is told here."""

from datetime import datetime

from django.db import transaction
from django.urls import reverse

from accounts.models import DirectoryBrake
from accounts.roles import Permission
from notices.kinds import NoticeKind
from notices.leads import tell_leads
from notices.message import Message


@transaction.atomic
def tell_of_brake(*, now: datetime) -> bool:
    """Tell leads and channels of a brake that is on, once however many processes ask; returns whether it did."""
    brake = DirectoryBrake.objects.open().filter(notified_at=None).first()
    if brake is None or not DirectoryBrake.objects.filter(
        pk=brake.pk, notified_at=None
    ).update(notified_at=now):
        return False
    message = Message(
        "The directory is not believed",
        f"{brake.reason} Nobody loses sessions, tokens, teams or roles by it until a platform lead has looked.",
        action="Look at the directory",
    )
    about, link = ("directory-brake", brake.pk), reverse("directory")
    tell_leads(
        NoticeKind.DIRECTORY_BRAKED,
        subject=about,
        link=link,
        message=message,
        now=now,
        may=Permission.MANAGE_ACCESS,
    )
    return True
