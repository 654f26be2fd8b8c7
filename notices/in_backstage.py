"""Telling people in Backstage, where the list of notifications has one line for each thing they are told about."""

from accounts.directory import backstage
from connectors.backstage import Away, Notification
from connectors.errors import PermanentError, TemporaryError
from notices.kinds import NoticeKind, Pace, Way
from notices.models import Delivery, Notice
from notices.servers import Outside

# Which of its tokens are good is for Backstage's operators to mend: no message is at fault.
OF_THE_SETUP = "catalog"


class NobodyToTell(Exception):
    """It is not to be shown to anybody in Backstage; nothing has failed."""


def send(notice: Notice, outside: Outside) -> None:
    """Show a person's notice in Backstage; raises ConnectorError when it was not taken, or NobodyToTell."""
    person = notice.person
    if person is None or not person.is_active or outside.backstage is None:
        raise NobodyToTell
    if _is_out_of_date(notice):
        raise NobodyToTell
    user_ref = _user_ref_of(str(person.oid))
    if not user_ref:
        if notice.kind == NoticeKind.TEST:
            raise PermanentError("Backstage's catalog does not know this person.")
        raise NobodyToTell
    outside.backstage.notify(user_ref, _notification(notice, outside))


def _user_ref_of(oid: str) -> str:
    """Who this is there, empty for nobody; raises Away while nobody can be looked up, whoever it is."""
    try:
        return backstage.user_ref_of(oid)
    except TemporaryError as error:
        raise Away(error.message) from error
    except PermanentError as error:
        if error.code == OF_THE_SETUP:
            raise Away(error.message) from error
        raise


def _is_out_of_date(notice: Notice) -> bool:
    """Whether Backstage shows something newer about the same thing, whose place this one would take."""
    return Delivery.objects.filter(
        way=Way.BACKSTAGE,
        state=Delivery.State.SENT,
        notice__person=notice.person_id,
        notice__subject_type=notice.subject_type,
        notice__subject_id=notice.subject_id,
        notice__gt=notice.pk,
    ).exists()


def _notification(notice: Notice, outside: Outside) -> Notification:
    said = notice.said
    return Notification(
        title=said.title,
        description=said.sentence,
        link=outside.public_url + notice.link,
        topic=notice.kind,
        scope=f"{notice.subject_type}-{notice.subject_id}",
        severity="normal" if notice.pace == Pace.AT_ONCE else "low",
    )
