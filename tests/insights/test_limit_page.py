"""The page of a limit: its course, and how platform leads ask Azure for more of a quota."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from capacity.increases import actions
from capacity.increases.actions import Ask
from capacity.increases.states import State
from capacity.models import Meter, QuotaIncrease, Reading
from tests.insights.fleet import SIZE, VCPUS, Site, connect, read_for_weeks, site
from tests.pages import Element, parsed
from tests.scene import scene

pytestmark = pytest.mark.django_db
MAX_QUERIES = 12
REASON = "Vision trains from January on."
# Twelve machines now; what the form suggests without a forecast.
NOW_ALLOWED, DOUBLE = 12 * VCPUS, 24 * VCPUS


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Site:
    connect(monkeypatch)
    return site(scene())


def signed_in(user: User) -> Client:
    browser = Client()
    browser.force_login(user)
    return browser


def address(here: Site) -> str:
    return f"/capacity/limits/{here.meter().pk}"


def page(here: Site, user: User | None = None, **asked: object) -> Element:
    answer = signed_in(user or here.scene.priya).get(
        address(here), {k: str(v) for k, v in asked.items()}
    )
    assert answer.status_code == 200
    return parsed(answer.content.decode())


def field(found: Element, name: str) -> Element | None:
    return next((one for one in found.walk() if one.attrs.get("name") == name), None)


def gives(found: Element) -> str:
    return next(one.words for one in found.walk() if one.attrs.get("id") == "gives")


def ask(here: Site, limit: int = DOUBLE) -> QuotaIncrease:
    asked = Ask(limit=limit, reason=REASON)
    return actions.ask(here.meter().pk, asked, by=here.scene.priya, now=timezone.now())


def test_a_limit_of_nothing_of_which_nothing_is_used_has_a_page(here: Site) -> None:
    now = timezone.now()
    Meter.objects.filter(pk=here.meter().pk).update(limit=0, used=0)
    for days in (1, 2):
        Reading.objects.create(
            meter=here.meter(), at=now - timedelta(days=days), limit=0, used=0
        )
    assert page(here, here.scene.ada).words


def test_its_course_is_drawn_and_stands_in_a_table(here: Site) -> None:
    read_for_weeks(here.meter(), weeks=10, per_week=19, now=timezone.now())
    found = page(here, here.scene.ada)
    tables = [one for one in found.walk() if one.tag == "table"]
    assert [sum(1 for one in table.walk() if one.tag == "tr") for table in tables] == [
        11,
        14,
    ]
    assert "dashed line is the limit of 1,152 vCPUs" in found.words
    assert any("line-chart__ahead" in one.classes for one in found.walk())


def test_it_is_drawn_from_two_days_of_readings_on(here: Site) -> None:
    assert "It is drawn from two days of readings on." in page(here).words


def test_a_limit_that_there_is_not_is_missing(here: Site) -> None:
    assert signed_in(here.scene.priya).get("/capacity/limits/999999").status_code == 404


def test_it_suggests_twice_the_limit_and_says_what_that_gives(here: Site) -> None:
    found = page(here)
    suggested = field(found, "limit")
    assert suggested is not None
    assert suggested.attrs["value"] == str(DOUBLE)
    assert gives(found) == f"1,152 → 2,304 vCPUs: 12 more {SIZE} (48 GPUs)."


def test_it_suggests_what_is_expected_in_twelve_weeks_in_whole_machines(
    here: Site,
) -> None:
    Meter.objects.filter(pk=here.meter().pk).update(used=10 * VCPUS)
    read_for_weeks(here.meter(), weeks=10, per_week=VCPUS, now=timezone.now())
    suggested = field(page(here), "limit")
    assert suggested is not None
    # Of today's reading it is not known at which hour it was made.
    assert int(suggested.attrs["value"]) in (22 * VCPUS, 23 * VCPUS)


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["abc", "0", "1152", "-1", "115201", "9" * 30, "1e5"])
def test_a_limit_in_the_address_that_makes_no_sense_is_answered_with_a_sentence(
    here: Site, limit: str
) -> None:
    found = page(here, limit=limit)
    assert gives(found) == "Write a whole number of vCPUs from 1,153 to 100,000."
    suggested = field(found, "limit")
    assert suggested is not None
    assert suggested.attrs["value"] == str(DOUBLE)


def test_a_lead_asks_and_reads_how_it_stands(here: Site) -> None:
    sent = {"limit": str(DOUBLE), "reason": REASON}
    browser = signed_in(here.scene.priya)
    answer = browser.post(address(here), sent, follow=True)
    said = parsed(answer.content.decode()).words
    assert "Asked. A worker sends it to Azure now." in said
    assert "Being sent 1,152 → 2,304 vCPUs" in said
    assert "The portal sends it now." in said
    assert REASON in said
    # The button twice, or a second lead: still one.
    browser.post(address(here), sent)
    assert QuotaIncrease.objects.count() == 1
    assert field(page(here), "reason") is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "reason", "words"),
    [
        ("1152", REASON, "Write a whole number of vCPUs from 1,153"),
        ("", REASON, "Nothing stands here yet. Fill it in."),
        ("many", REASON, "Write a whole number of vCPUs"),
        ("2304", "", "Nothing stands here yet. Fill it in."),
        ("2304", "x" * 1001, "Write 1000 characters at most."),
    ],
)
def test_bad_input_changes_nothing_and_says_so(
    here: Site, limit: str, reason: str, words: str
) -> None:
    answer = signed_in(here.scene.priya).post(
        address(here), {"limit": limit, "reason": reason}
    )
    assert answer.status_code == 422
    said = parsed(answer.content.decode()).words
    assert "Azure was not asked. Please look at this:" in said
    assert words in said
    assert not QuotaIncrease.objects.exists()


def test_another_limit_while_one_is_open_is_refused(here: Site) -> None:
    ask(here)
    answer = signed_in(here.scene.priya).post(
        address(here), {"limit": "4800", "reason": REASON}
    )
    assert answer.status_code == 409
    assert "2,304 vCPUs were asked for already" in answer.content.decode()


def test_who_is_no_lead_asks_nothing(here: Site) -> None:
    for person in (here.scene.ada, here.scene.elena):
        assert field(page(here, person), "reason") is None
        sent = {"limit": str(DOUBLE), "reason": REASON}
        assert signed_in(person).post(address(here), sent).status_code == 403
    assert (
        "Platform leads ask Azure for more of it." in page(here, here.scene.ada).words
    )
    assert not QuotaIncrease.objects.exists()


def test_what_is_no_quota_of_azures_offers_nothing_to_ask(here: Site) -> None:
    other = Meter.objects.create(
        key="pool:training/a100",
        title="Pool",
        unit="nodes",
        limit=12,
        used=2,
        seen_at=timezone.now(),
    )
    browser = signed_in(here.scene.priya)
    found = parsed(browser.get(f"/capacity/limits/{other.pk}").content.decode())
    assert "More from Azure" not in found.words
    refused = browser.post(
        f"/capacity/limits/{other.pk}", {"limit": "24", "reason": REASON}, follow=True
    )
    assert "no quota of Azure" in refused.content.decode()
    assert not QuotaIncrease.objects.exists()


def test_without_azure_it_says_how_to_connect_it(
    here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capacity.connection.settings.ENV.azure_subscription_id", "")
    found = page(here)
    assert field(found, "reason") is None
    assert "The portal is not connected to Azure" in found.words


def test_a_request_is_withdrawn_while_azure_has_nothing_of_it(here: Site) -> None:
    row = ask(here)
    withdraw = f"/capacity/increases/{row.pk}/withdraw"
    assert "Withdraw" not in page(here, here.scene.ada).words
    assert signed_in(here.scene.ada).post(withdraw).status_code == 403
    answer = signed_in(here.scene.priya).post(withdraw, follow=True)
    assert "Withdrawn: Azure is not asked." in answer.content.decode()
    row.refresh_from_db()
    assert row.state == State.WITHDRAWN
    QuotaIncrease.objects.create(
        **{
            name: getattr(row, name)
            for name in ("subscription", "region", "family", "title", "reason")
        },
        limit=DOUBLE,
        limit_before=NOW_ALLOWED,
        asked_by=here.scene.priya,
        asked_at=timezone.now(),
        requeue_at=timezone.now(),
        sending_since=timezone.now(),
    )
    newest = QuotaIncrease.objects.in_progress().get()
    answer = signed_in(here.scene.priya).post(
        f"/capacity/increases/{newest.pk}/withdraw", follow=True
    )
    assert "cannot be withdrawn" in answer.content.decode()
    assert (
        signed_in(here.scene.priya)
        .post("/capacity/increases/999999/withdraw")
        .status_code
        == 404
    )


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (State.SENT, "Azure has had it since"),
        (State.GRANTED, "Azure granted it on"),
        (State.REFUSED, "A support request in Azure"),
        (State.FAILED, "The portal gave it up on"),
    ],
)
def test_each_state_says_what_became_of_it(
    here: Site, state: State, words: str
) -> None:
    at = timezone.now() - timedelta(days=1)
    row = ask(here)
    QuotaIncrease.objects.filter(pk=row.pk).update(
        state=State.SENT, azure_id="a", sent_at=at
    )
    if state is not State.SENT:
        QuotaIncrease.objects.filter(pk=row.pk).update(
            state=state, answered_at=at, message="Not here."
        )
    said = page(here, here.scene.ada).words
    assert state.words in said
    assert words in said


@pytest.mark.slow
def test_it_takes_as_many_queries_however_many_requests_there_were(here: Site) -> None:
    browser, taken = signed_in(here.scene.priya), []
    browser.get(address(here))
    for more in (5, 45):
        for _ in range(more):
            row = ask(here)
            actions.withdraw(row.pk, by=here.scene.priya, now=timezone.now())
        with CaptureQueriesContext(connection) as captured:
            assert browser.get(address(here)).status_code == 200
        taken.append(len(captured))
    assert taken[0] == taken[1] <= MAX_QUERIES
