"""A stand-in sits in somebody's seat between two dates, and never longer, never twice, never for themselves."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from accounts.models import Delegation, RoleHeld, User
from accounts.roles import Permission, Role
from accounts.stand_ins.actions import (
    accept,
    decline,
    delegate,
    end_delegation,
    givers_for,
)
from audit.models import Event
from tests import factories
from tests.scene import DAY, HOUR, NOW
from web.refusals import BadInput, Conflict, NoRight, Refused

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.fixture
def priya(db: None) -> User:
    return factories.person("Priya Raman", Role.PLATFORM_LEAD)


@pytest.fixture
def ada(db: None) -> User:
    return factories.person("Ada Okafor")


def lend(
    giver: User,
    to: User,
    start: datetime = NOW,
    end: datetime = NOW + 2 * DAY,
    **fields: Any,
) -> Delegation:
    """Named and accepted."""
    made = invite(giver, to, start, end, **fields)
    accept(made, by=to, now=NOW)
    return made


def invite(
    giver: User,
    to: User,
    start: datetime = NOW,
    end: datetime = NOW + 2 * DAY,
    **fields: Any,
) -> Delegation:
    """Named, and not answered yet."""
    usual: dict[str, Any] = {"why": "On holiday.", "now": NOW}
    return delegate(giver=giver, to=to, starts_at=start, until=end, **(usual | fields))


def test_the_seat_is_lent_from_one_moment_until_another(priya: User, ada: User) -> None:
    lend(priya, ada, NOW + HOUR, NOW + DAY)
    seats = {
        moment: givers_for(ada, moment)
        for moment in (NOW, NOW + HOUR, NOW + DAY - MINUTE, NOW + DAY)
    }
    assert list(seats.values()) == [[], [priya], [priya], []]
    assert givers_for(priya, NOW + HOUR) == []
    event = Event.objects.get(kind="delegation.created")
    assert (event.kind, event.actor_name, event.details["to"]) == (
        "delegation.created",
        "Priya Raman",
        "Ada Okafor",
    )


def test_from_now_on_may_arrive_a_little_late(priya: User, ada: User) -> None:
    assert lend(priya, ada, NOW - MINUTE).starts_at == NOW


def test_it_ends_at_once_when_either_ends_it_and_only_once(
    priya: User, ada: User
) -> None:
    for by in (priya, ada):
        made = lend(priya, ada)
        end_delegation(made, by=by, now=NOW + HOUR)
        end_delegation(made, by=by, now=NOW + 2 * HOUR)
        assert givers_for(ada, NOW + HOUR) == []
        assert Delegation.objects.get(pk=made.pk).ended_at == NOW + HOUR
    assert Event.objects.filter(kind="delegation.ended").count() == 2


def test_until_it_is_accepted_it_counts_for_nothing(priya: User, ada: User) -> None:
    made = invite(priya, ada)
    assert (made.state, givers_for(ada, NOW)) == ("invited", [])
    assert accept(made, by=ada, now=NOW + HOUR)
    assert not accept(made, by=ada, now=NOW + 2 * HOUR)
    ada.lenders = None
    assert givers_for(ada, NOW + HOUR) == [priya]
    row = Delegation.objects.get()
    assert (row.state, row.accepted_at) == ("accepted", NOW + HOUR)
    event = Event.objects.latest("seq")
    assert (event.kind, event.actor_name) == ("delegation.accepted", "Ada Okafor")


def test_who_declines_never_stands_in_and_the_giver_may_name_somebody_else(
    priya: User, ada: User
) -> None:
    made = invite(priya, ada)
    assert decline(made, by=ada, now=NOW)
    assert not decline(made, by=ada, now=NOW)
    with pytest.raises(Conflict) as refused:
        accept(made, by=ada, now=NOW)
    assert refused.value.code == "not_open"
    row = Delegation.objects.get()
    assert (row.state, row.ended_at, givers_for(ada, NOW)) == ("declined", NOW, [])
    assert Event.objects.latest("seq").kind == "delegation.declined"
    lend(priya, factories.person("Ben"))


def test_nobody_answers_for_another(priya: User, ada: User) -> None:
    made = invite(priya, ada)
    for by in (priya, factories.person("Mallory", Role.PLATFORM_LEAD)):
        for answer in (accept, decline):
            with pytest.raises(NoRight):
                answer(made, by=by, now=NOW)
    assert Delegation.objects.get().state == "invited"


def test_what_was_taken_back_is_over_or_was_accepted_is_not_answered_any_more(
    priya: User, ada: User
) -> None:
    taken_back = invite(priya, ada)
    end_delegation(taken_back, by=priya, now=NOW)
    late = invite(priya, ada)
    for made, now, answer, code in (
        (taken_back, NOW, accept, "not_open"),
        (taken_back, NOW, decline, "not_open"),
        (late, NOW + 3 * DAY, accept, "not_open"),
        (late, NOW + 3 * DAY, decline, "not_open"),
    ):
        with pytest.raises(Conflict) as refused:
            answer(made, by=ada, now=now)
        assert refused.value.code == code
    accept(late, by=ada, now=NOW)
    with pytest.raises(Conflict) as refused:
        decline(late, by=ada, now=NOW)
    assert refused.value.code == "accepted_already"


def test_somebody_who_only_audits_by_now_does_not_accept(
    priya: User, ada: User
) -> None:
    made = invite(priya, ada)
    RoleHeld.objects.filter(user=ada).update(role=Role.AUDITOR)
    with pytest.raises(NoRight):
        accept(made, by=ada, now=NOW)


def test_nobody_else_ends_it(priya: User, ada: User) -> None:
    made = lend(priya, ada)
    with pytest.raises(NoRight):
        end_delegation(
            made, by=factories.person("Mallory", Role.PLATFORM_LEAD), now=NOW
        )
    assert givers_for(ada, NOW) == [priya]


def test_what_is_over_is_not_ended_again(priya: User, ada: User) -> None:
    made = lend(priya, ada)
    end_delegation(made, by=priya, now=NOW + 3 * DAY)
    assert Delegation.objects.get().ended_at is None


@pytest.mark.parametrize(
    ("start", "end", "code"),
    [
        (NOW - HOUR, NOW + DAY, "in_the_past"),
        (NOW - 3 * DAY, NOW - DAY, "in_the_past"),
        (NOW + DAY, NOW + DAY, "ends_before_it_starts"),
        (NOW + DAY, NOW + HOUR, "ends_before_it_starts"),
        (NOW, NOW - MINUTE, "ends_before_it_starts"),
        (NOW, NOW + 90 * DAY + MINUTE, "too_long"),
        (NOW + 366 * DAY, NOW + 367 * DAY, "too_far_ahead"),
    ],
)
def test_dates_that_cannot_be_are_refused(
    priya: User, ada: User, start: datetime, end: datetime, code: str
) -> None:
    with pytest.raises(BadInput) as refused:
        lend(priya, ada, start, end)
    assert (refused.value.code, Delegation.objects.count()) == (code, 0)


def test_ninety_days_are_possible(priya: User, ada: User) -> None:
    assert lend(priya, ada, NOW, NOW + 90 * DAY).until == NOW + 90 * DAY


def test_nobody_stands_in_for_themselves(priya: User) -> None:
    with pytest.raises(BadInput) as refused:
        lend(priya, priya)
    assert refused.value.code == "not_oneself"


def test_a_stand_in_has_an_account_that_is_not_blocked(priya: User, ada: User) -> None:
    RoleHeld.objects.filter(user=ada).delete()
    for gone in (ada, factories.person("Tom", is_active=False)):
        with pytest.raises(BadInput) as refused:
            lend(priya, gone)
        assert refused.value.code == "no_such_person"


def test_who_decides_nothing_has_no_seat_to_lend(ada: User, priya: User) -> None:
    with pytest.raises(NoRight):
        lend(ada, priya)
    with pytest.raises(NoRight):
        lend(factories.person("Sam", Role.AUDITOR), priya)
    factories.person("Ben", managers=[str(ada.oid)])
    assert lend(ada, priya).giver == ada


def test_a_giver_has_one_stand_in_at_a_time(priya: User, ada: User) -> None:
    ben = factories.person("Ben")
    lend(priya, ada, NOW + DAY, NOW + 3 * DAY)
    for start, end in (
        (NOW, NOW + 2 * DAY),
        (NOW + 2 * DAY, NOW + 4 * DAY),
        (NOW, NOW + 9 * DAY),
    ):
        with pytest.raises(Conflict) as refused:
            lend(priya, ben, start, end)
        assert refused.value.code == "stand_in_already"
    lend(priya, ben, NOW, NOW + DAY)
    lend(priya, ben, NOW + 3 * DAY, NOW + 4 * DAY)
    assert givers_for(ben, NOW + DAY) == []
    assert givers_for(ada, NOW + DAY) == [priya]


def test_what_was_ended_makes_room(priya: User, ada: User) -> None:
    end_delegation(lend(priya, ada), by=priya, now=NOW)
    assert lend(priya, factories.person("Ben")).giver == priya


def test_nobody_lends_on_what_was_lent_to_them(priya: User, ada: User) -> None:
    ben = factories.person("Ben")
    lend(priya, ada)
    with pytest.raises(Refused):
        lend(ada, ben)
    marcus = factories.person("Marcus", Role.PLATFORM_LEAD)
    lend(marcus, priya)
    assert [giver.name for giver in givers_for(ada, NOW)] == ["Priya Raman"]
    assert [giver.name for giver in givers_for(priya, NOW)] == ["Marcus"]


def test_a_giver_who_was_blocked_lends_nothing_and_one_who_lost_the_role_shows_it(
    priya: User, ada: User
) -> None:
    lend(priya, ada)
    RoleHeld.objects.filter(user=priya).update(role=Role.DATA_SCIENTIST)
    assert [
        giver.may(Permission.DECIDE_AS_PLATFORM) for giver in givers_for(ada, NOW)
    ] == [False]
    RoleHeld.objects.filter(user=priya).delete()
    assert givers_for(ada, NOW) == []
