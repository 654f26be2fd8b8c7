"""Who decides was confirmed by the directory a moment ago; while it is away, reading goes on and deciding waits."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from accounts.directory import freshness
from accounts.models import Contact, User
from accounts.roles import Permission, Role
from accounts.tasks import follow_due
from sandbox.world import group_id, person_id
from tests import factories
from tests.calling import Caller
from tests.sandbox.entra.running import Running
from tests.scene import NOW
from web.refusals import Away, NoRight

pytestmark = pytest.mark.django_db
MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
LEADS = group_id(4)


def marcus(**fields: Any) -> User:
    """A platform lead by group, confirmed a minute ago."""
    usual: dict[str, Any] = {
        "oid": person_id(5),
        "groups": [LEADS],
        "groups_known_at": NOW - MINUTE,
    }
    return factories.person("Marcus Weber", Role.PLATFORM_LEAD, **(usual | fields))


def break_off(directory: Running) -> None:
    directory.admin("POST", "/sandbox/faults", path="^/v1.0/", status=503)


def test_who_is_confirmed_passes_until_five_minutes_are_over(db: None) -> None:
    lead = marcus(groups_known_at=NOW)
    freshness.check(lead, now=NOW + 5 * MINUTE)
    with pytest.raises(
        Away, match="Nothing was changed: Entra ID does not answer"
    ) as refused:
        freshness.check(lead, now=NOW + 5 * MINUTE + SECOND)
    assert refused.value.code == "directory_away"


def test_who_was_never_confirmed_does_not_pass(db: None) -> None:
    with pytest.raises(Away):
        freshness.check(marcus(groups_known_at=None), now=NOW)


def test_check_looks_at_the_row_and_not_at_what_was_read_before(db: None) -> None:
    lead = marcus()
    User.objects.update(groups_known_at=NOW - 6 * MINUTE)
    with pytest.raises(Away):
        freshness.check(lead, now=NOW)


def test_renewing_asks_now_and_takes_the_right_that_a_group_gave(
    directory: Running,
) -> None:
    lead = marcus()
    assert lead.may(Permission.DECIDE_AS_PLATFORM)
    directory.admin("DELETE", f"/v1.0/groups/{LEADS}/members/{person_id(5)}/$ref")
    freshness.renew(lead, now=NOW)
    assert not lead.may(Permission.DECIDE_AS_PLATFORM)
    assert (lead.groups, lead.groups_known_at) == ([], NOW)
    freshness.check(lead, now=NOW + 5 * MINUTE)


def test_renewing_ends_the_session_and_tokens_of_a_blocked_account(
    client: Client, directory: Running
) -> None:
    lead = marcus()
    caller = Caller(lead)
    client.force_login(lead)
    directory.sandbox.directory.set_enabled(person_id(5), False)
    freshness.renew(lead, now=NOW)
    assert not lead.may(Permission.DECIDE_AS_PLATFORM)
    with pytest.raises(NoRight) as refused:
        freshness.check(lead, now=NOW)
    assert refused.value.code == "account_disabled"
    assert client.get("/").status_code == 302
    assert caller.get("me/").status_code == 401


def test_an_entra_token_of_a_blocked_account_is_refused_while_it_lives(
    directory: Running,
) -> None:
    lead = marcus()
    bearer = {
        "Authorization": f"Bearer {directory.token(kind='api', person=person_id(5), scope='Requests.Decide')}"
    }
    assert Client().get("/api/v1/me/", headers=bearer).status_code == 200
    directory.sandbox.directory.set_enabled(person_id(5), False)
    freshness.renew(lead, now=NOW)
    assert Client().get("/api/v1/me/", headers=bearer).status_code == 401


def test_ten_decisions_in_a_row_ask_once(directory: Running) -> None:
    lead = marcus()
    freshness.renew(lead, now=NOW)
    break_off(directory)
    freshness.renew(lead, now=NOW + 14 * SECOND)
    assert not Contact.objects.failing().exists()
    freshness.renew(lead, now=NOW + 15 * SECOND)
    assert Contact.objects.failing().exists()


def test_a_directory_that_is_away_raises_nothing_takes_nothing_and_is_not_waited_for_again(
    directory: Running,
) -> None:
    lead = marcus()
    break_off(directory)
    freshness.renew(lead, now=NOW)
    assert lead.may(Permission.DECIDE_AS_PLATFORM)
    assert (lead.groups, lead.groups_known_at) == ([LEADS], NOW - MINUTE)
    directory.admin("DELETE", "/sandbox/faults")
    freshness.renew(lead, now=NOW + 14 * SECOND)
    assert lead.groups_known_at == NOW - MINUTE
    freshness.renew(lead, now=NOW + 15 * SECOND)
    assert lead.groups_known_at == NOW + 15 * SECOND
    assert not Contact.objects.failing().exists()


def test_an_outage_is_survived_for_five_minutes_then_decisions_wait_until_it_ends(
    directory: Running,
) -> None:
    lead = marcus(groups_known_at=NOW)
    break_off(directory)
    for minute in (2, 4):
        freshness.renew(lead, now=NOW + minute * MINUTE)
        freshness.check(lead, now=NOW + minute * MINUTE)
    freshness.renew(lead, now=NOW + 6 * MINUTE)
    with pytest.raises(Away):
        freshness.check(lead, now=NOW + 6 * MINUTE)
    assert Caller(lead).get("teams/").status_code == 200
    directory.admin("DELETE", "/sandbox/faults")
    freshness.renew(lead, now=NOW + 7 * MINUTE)
    freshness.check(lead, now=NOW + 7 * MINUTE)


def test_a_portal_that_lost_its_permission_confirms_nobody(directory: Running) -> None:
    lead = marcus()
    directory.admin("POST", "/sandbox/faults", path="^/v1.0/users/", status=403)
    freshness.renew(lead, now=NOW)
    assert (lead.groups, lead.groups_known_at) == ([LEADS], NOW - MINUTE)
    assert Contact.objects.failing().get().error.startswith("Graph answered 403")


def test_the_notice_says_since_when_and_goes_with_the_next_answer(
    directory: Running,
) -> None:
    marcus(groups_known_at=NOW - 10 * MINUTE)
    assert freshness.notice(NOW) == ""
    follow_due(NOW)
    break_off(directory)
    follow_due(NOW + 2 * MINUTE)
    said = "Entra ID has not answered since 12:00. Reading goes on with what was known; decisions wait."
    assert freshness.notice(NOW + 3 * MINUTE) == said
    assert "since Fri 20 Nov, 12:00." in freshness.notice(NOW + timedelta(days=1))
    directory.admin("DELETE", "/sandbox/faults")
    follow_due(NOW + 4 * MINUTE)
    assert freshness.notice(NOW + 5 * MINUTE) == ""


def test_an_old_failure_does_not_undo_a_newer_answer(db: None) -> None:
    Contact.objects.answered(NOW)
    Contact.objects.failed(NOW - SECOND, "slow")
    assert not Contact.objects.failing().exists()
    Contact.objects.failed(NOW + SECOND, "away")
    Contact.objects.failed(NOW + MINUTE, "still away")
    Contact.objects.answered(NOW - SECOND)
    row = Contact.objects.failing().get()
    assert (row.failing_since, row.failed_at, row.error) == (
        NOW + SECOND,
        NOW + MINUTE,
        "still away",
    )
