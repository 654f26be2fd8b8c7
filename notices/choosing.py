"""What a person chose to be told, and changing it."""

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from accounts.models import User
from accounts.roles import Permission
from audit.events import Kind
from audit.log import record
from notices.actions import drop_from_digest, tell
from notices.kinds import (
    CHOOSABLE,
    GROUPS,
    OF_LEADS,
    USUAL_HOUR,
    NoticeKind,
    Pace,
    Way,
)
from notices.message import Message
from notices.models import Delivery, DigestHour, Notice, Preference
from web.refusals import BadInput, Conflict

SETTINGS_PAGE = "/settings/notices/"
TEST = Message(
    "A test of your notices",
    "This is how Quartermaster writes to you. There is nothing to do.",
    action="Choose what you are told",
)


def groups_of(person: User) -> Mapping[str, tuple[NoticeKind, ...]]:
    """What this person can be told about, as their page groups it: of the platform platform leads alone are told."""
    is_lead = person.may(Permission.MANAGE_CLUSTERS)
    return {
        title: kinds for title, kinds in GROUPS.items() if is_lead or title != OF_LEADS
    }


def paces_of(person: User) -> dict[NoticeKind, Pace]:
    """How soon this person wants to be told about each kind."""
    chosen = dict(Preference.objects.filter(person=person).values_list("kind", "pace"))
    return {kind: Pace(chosen.get(kind.value, kind.default)) for kind in CHOOSABLE}


def hour_of(person: User) -> int:
    """The hour (UTC) of this person's daily mail."""
    hour = (
        DigestHour.objects.filter(person=person).values_list("hour", flat=True).first()
    )
    return USUAL_HOUR if hour is None else hour


@transaction.atomic
def choose(
    person: User, *, paces: Mapping[NoticeKind, Pace], hour: int | None = None
) -> None:
    """Set how soon a person is told about these kinds, and the hour of the daily mail; the rest stays.

    What waits for the daily mail and is of a kind now switched off is not sent any more. Raises BadInput.
    """
    if unknown := [kind for kind in paces if kind not in CHOOSABLE]:
        raise BadInput(
            "There is nothing to choose about this.",
            code="unknown_field",
            field=str(unknown[0]),
        )
    if hour is not None and not 0 <= hour <= 23:
        raise BadInput(
            "A day has the hours 0 to 23.", code="out_of_range", field="digest_hour"
        )
    before, hour_before = paces_of(person), hour_of(person)
    changed = {kind: pace for kind, pace in paces.items() if before[kind] != pace}
    is_moved = hour is not None and hour != hour_before
    if not changed and not is_moved:
        return
    Preference.objects.bulk_create(
        [
            Preference(person=person, kind=kind, pace=pace)
            for kind, pace in changed.items()
        ],
        update_conflicts=True,
        unique_fields=["person", "kind"],
        update_fields=["pace"],
    )
    if is_moved:
        DigestHour.objects.update_or_create(person=person, defaults={"hour": hour or 0})
    unwanted = [kind for kind, pace in changed.items() if pace is Pace.NONE]
    drop_from_digest(Notice.objects.filter(person=person, kind__in=unwanted))
    record(
        Kind.NOTICES_CHOSEN,
        actor=person.as_actor(),
        subject=("person", person.pk),
        paces={kind.value: pace.value for kind, pace in changed.items()},
        hour=hour if is_moved else None,
    )


@transaction.atomic
def send_test(person: User, *, now: datetime) -> Delivery:
    """Send somebody a test mail at their own wish; raises Conflict while the one before is still on its way."""
    # Who asks for two at once gets one.
    User.objects.select_for_update(no_key=True).get(pk=person.pk)
    if test_of(person, Way.EMAIL, state=Delivery.State.WAITING):
        raise Conflict("The test before is still on its way.", code="test_waiting")
    tell(
        NoticeKind.TEST,
        to=[person],
        subject=("person", person.pk),
        link=SETTINGS_PAGE,
        message=TEST,
        now=now,
    )
    delivery = Delivery.objects.get(
        notice__person=person,
        notice__kind=NoticeKind.TEST,
        way=Way.EMAIL,
        state=Delivery.State.WAITING,
    )
    record(
        Kind.NOTICE_TESTED,
        actor=person.as_actor(),
        subject=("person", person.pk),
        way="email",
    )
    return delivery


def test_of(person: User, way: Way, **state: str) -> Delivery | None:
    """A person's newest test that went this way; None when there was none."""
    tests = Delivery.objects.filter(
        notice__person=person, notice__kind=NoticeKind.TEST, way=way, **state
    )
    return tests.order_by("-id").first()
