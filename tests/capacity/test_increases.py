"""Requests for more quota from a lead's ask to Azure's answer, against the sandbox's Azure."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from audit.models import Event
from capacity.increases import actions
from capacity.increases.actions import Ask
from capacity.increases.reconcile import reconcile
from capacity.increases.states import State, next_look
from capacity.models import FamilyQuota, Meter, QuotaIncrease, Subscription
from connectors.azure.quota import AzureQuota
from notices.models import Notice
from reconciling import failpoints
from reconciling.controller import MAX_UNFINISHED
from sandbox.azure.quota import DAYS
from tests.capacity.connected import Site, connected, site
from tests.sandbox.azure.running import SUBSCRIPTION, Running
from web.refusals import BadInput, Conflict, NoRight

pytestmark = pytest.mark.django_db
A100, T4, H100 = (
    "StandardNCADSA100v4Family",
    "Standard NCASv3_T4 Family",
    "standardNDSH100v5Family",
)
REASON = "Vision trains from January on."


@pytest.fixture
def here(azure: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with connected(azure, monkeypatch):
        yield site(azure)


def meter(family: str) -> Meter:
    return Meter.objects.get(key=f"quota:{SUBSCRIPTION}/eastus/{family}".lower())


def ask(here: Site, family: str, limit: int, reason: str = REASON) -> QuotaIncrease:
    asked = Ask(limit=limit, reason=reason)
    return actions.ask(meter(family).pk, asked, by=here.scene.priya, now=here.time())


def work(here: Site, row: QuotaIncrease) -> QuotaIncrease:
    """Let a worker do what is due."""
    reconcile(row.pk, now=here.time)
    row.refresh_from_db()
    return row


def in_azure(here: Site) -> list[tuple[str, int]]:
    return [
        (one.name, one.limit)
        for one in AzureQuota(here.azure.session()).requests("eastus")
    ]


def told(here: Site) -> list[str]:
    rows = Notice.objects.filter(kind="quota_answered").order_by("person_id", "pk")
    return [one.message["title"] for one in rows.filter(person=here.scene.priya)]


def test_what_azure_grants_at_once_raises_the_limit_and_is_told_once(
    here: Site,
) -> None:
    row = work(here, ask(here, T4, 1024))
    assert (row.state, row.azure_id != "") == (State.SENT, True)
    here.azure.advance(2)
    here.time.pass_(minutes=1)
    row = work(here, row)
    assert (row.state, row.answered_at) == (State.GRANTED, here.time())
    assert FamilyQuota.objects.get(region="eastus", name=T4).limit == 1024
    assert meter(T4).limit == 1024
    assert told(here) == [
        "Azure grants 1,024 vCPUs: Standard NCASv3_T4 Family vCPUs in eastus"
    ]
    assert not reconcile(row.pk, now=here.time)
    assert len(told(here)) == 1
    kinds = Event.objects.filter(subject_type="quota_increase").order_by("seq")
    assert [one.kind for one in kinds] == [
        "quota_increase.asked",
        "quota_increase.sent",
        "quota_increase.granted",
    ]


def test_what_a_person_at_azure_decides_is_asked_after_for_days(here: Site) -> None:
    row = work(here, ask(here, A100, 384))
    assert (row.state, row.message) == (State.SENT, "Request is being processed.")
    assert row.requeue_at == here.time() + next_look(timedelta(0))
    here.time.pass_(hours=20)
    row = work(here, row)
    assert (row.state, row.requeue_at) == (State.SENT, here.time() + timedelta(hours=1))
    here.azure.advance(DAYS + 1)
    here.time.pass_(hours=60)
    assert work(here, row).state == State.GRANTED
    assert FamilyQuota.objects.get(region="eastus", name=A100).limit == 384
    assert in_azure(here) == [(A100, 384)]


def test_a_refusal_keeps_azures_sentence_and_tells_the_way_from_here(
    here: Site,
) -> None:
    row = work(here, ask(here, H100, 384))
    here.azure.advance(2)
    here.time.pass_(minutes=1)
    row = work(here, row)
    assert row.state == State.REFUSED
    assert "unavailable in the location" in row.message
    assert "ResourceNotAvailableForOffer" in row.message
    [notice] = Notice.objects.filter(kind="quota_answered", person=here.scene.priya)
    assert "support request" in notice.message["sentence"]
    assert FamilyQuota.objects.get(region="eastus", name=H100).limit == 192


def test_a_lost_answer_makes_no_second_request(here: Site) -> None:
    here.azure.fault("PUT", "/quotas/", drop=True)
    row = work(here, ask(here, T4, 1024))
    assert (row.state, row.sending_since) == (State.NEW, here.time())
    # Azure has granted it by the time that somebody looks: no open one is found, and none is sent again.
    here.azure.advance(2)
    here.time.pass_(minutes=5)
    assert work(here, row).state == State.GRANTED
    assert in_azure(here) == [(T4, 1024)]


@pytest.mark.parametrize("point", ["increase.sending", "increase.sent"])
def test_a_worker_that_dies_is_followed_by_one_that_sends_it_once(
    here: Site, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Crash(BaseException):
        pass

    def crash() -> None:
        raise Crash

    row = ask(here, A100, 384)
    monkeypatch.setattr(failpoints, "strike", crash)
    monkeypatch.setenv("FAILPOINT", point)
    failpoints.forget()
    with pytest.raises(Crash):
        reconcile(row.pk, now=here.time)
    monkeypatch.delenv("FAILPOINT")
    failpoints.forget()
    here.time.pass_(minutes=3)
    assert work(here, row).state == State.SENT
    assert in_azure(here) == [(A100, 384)]


def test_an_older_request_for_the_same_limit_is_another_one(here: Site) -> None:
    AzureQuota(here.azure.session()).request_increase("eastus", T4, 1024)
    here.azure.advance(2)
    here.azure.azure.usage.raise_limit("eastus", T4, 512)
    row = ask(here, T4, 1024)
    # The sandbox writes down by the real clock when a request came.
    QuotaIncrease.objects.update(sending_since=timezone.now() + timedelta(days=30))
    assert work(here, row).state == State.SENT
    assert len(in_azure(here)) == 2


def test_a_request_that_somebody_made_in_azure_is_waited_for(here: Site) -> None:
    AzureQuota(here.azure.session()).request_increase("eastus", A100, 480)
    row = work(here, ask(here, A100, 384))
    assert (row.state, row.sending_since) == (State.NEW, None)
    assert "480 vCPUs" in row.message
    assert row.requeue_at > here.time() + timedelta(minutes=4)
    assert row.may_be_withdrawn


def test_what_the_portal_may_not_ask_for_fails_with_the_permission(here: Site) -> None:
    here.azure.fault(
        "PUT",
        "/quotas/",
        status=403,
        code="AuthorizationFailed",
        message="no Microsoft.Quota/quotas/write",
    )
    row = work(here, ask(here, A100, 384))
    assert row.state == State.FAILED
    assert "Microsoft.Quota/quotas/write" in row.message
    assert in_azure(here) == []
    # Nothing is in the way of asking once more.
    assert ask(here, A100, 384).pk != row.pk


def test_a_throttled_call_is_made_again_when_azure_says(here: Site) -> None:
    here.azure.fault("GET", "/quotaRequests", status=429, retry_after=1800, times=9)
    row = work(here, ask(here, A100, 384))
    assert row.state == State.NEW
    assert row.requeue_at >= here.time() + timedelta(minutes=30)


def test_a_request_that_azure_forgot_is_given_up_after_an_hour(here: Site) -> None:
    row = work(here, ask(here, A100, 384))
    here.azure.azure.state.table("quota requests").clear()
    here.time.pass_(minutes=10)
    assert work(here, row).state == State.SENT
    here.time.pass_(hours=2)
    row = work(here, row)
    assert (row.state, "knows this request no more" in row.message) == (
        State.FAILED,
        True,
    )


def test_one_that_ends_every_worker_fails_and_is_told(here: Site) -> None:
    row = ask(here, A100, 384)
    QuotaIncrease.objects.update(unfinished=MAX_UNFINISHED)
    row = work(here, row)
    assert (row.state, row.parked_at) == (State.FAILED, here.time())
    assert len(told(here)) == 1


def test_the_same_ask_is_one_request_and_another_one_waits(here: Site) -> None:
    first = ask(here, A100, 384)
    assert ask(here, A100, 384).pk == first.pk
    with pytest.raises(Conflict) as refused:
        ask(here, A100, 480)
    assert (refused.value.code, refused.value.field) == ("increase_open", "limit")
    assert QuotaIncrease.objects.count() == 1


@pytest.mark.parametrize(
    ("limit", "reason", "code", "field"),
    [
        (192, REASON, "not_more_than_now", "limit"),
        (0, REASON, "not_more_than_now", "limit"),
        (-5, REASON, "not_more_than_now", "limit"),
        (19_201, REASON, "increase_too_large", "limit"),
        (10**9, REASON, "increase_too_large", "limit"),
        (384, "  ", "required", "reason"),
        (384, "x" * 1001, "too_many_characters", "reason"),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_field(
    here: Site, limit: int, reason: str, code: str, field: str
) -> None:
    with pytest.raises(BadInput) as refused:
        ask(here, A100, limit, reason)
    assert (refused.value.code, refused.value.field) == (code, field)
    assert not QuotaIncrease.objects.exists()


def test_platform_leads_alone_ask_and_withdraw(here: Site) -> None:
    row = ask(here, A100, 384)
    for person in (here.scene.ada, here.scene.elena, here.scene.mallory):
        with pytest.raises(NoRight):
            actions.ask(
                meter(A100).pk,
                Ask(limit=384, reason=REASON),
                by=person,
                now=here.time(),
            )
        with pytest.raises(NoRight):
            actions.withdraw(row.pk, by=person, now=here.time())


def test_a_limit_that_is_no_quota_is_not_asked_for(here: Site) -> None:
    other = Meter.objects.create(
        key="granted:a/b", title="x", unit="GPUs", limit=8, used=1, seen_at=here.time()
    )
    with pytest.raises(Conflict) as refused:
        actions.ask(
            other.pk, Ask(limit=16, reason=REASON), by=here.scene.priya, now=here.time()
        )
    assert refused.value.code == "not_a_quota"


def test_without_azure_nothing_is_asked(
    here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settings.ENV, "azure_subscription_id", "")
    with pytest.raises(Conflict) as refused:
        ask(here, A100, 384)
    assert refused.value.code == "not_connected"


def test_it_is_withdrawn_while_azure_has_nothing_of_it(here: Site) -> None:
    row = ask(here, A100, 384)
    assert (
        actions.withdraw(row.pk, by=here.scene.priya, now=here.time()).state
        == State.WITHDRAWN
    )
    assert (
        actions.withdraw(row.pk, by=here.scene.priya, now=here.time()).state
        == State.WITHDRAWN
    )
    assert not reconcile(row.pk, now=here.time)
    assert in_azure(here) == []
    second = work(here, ask(here, A100, 384))
    with pytest.raises(Conflict) as refused:
        actions.withdraw(second.pk, by=here.scene.priya, now=here.time())
    assert refused.value.code == "increase_sent"


def test_one_that_may_have_reached_azure_is_not_withdrawn(here: Site) -> None:
    here.azure.fault("PUT", "/quotas/", drop=True)
    row = work(here, ask(here, A100, 384))
    with pytest.raises(Conflict, match="may have it"):
        actions.withdraw(row.pk, by=here.scene.priya, now=here.time())


def test_a_grant_has_the_subscription_read_again(here: Site) -> None:
    before = Subscription.objects.get().answered_at
    row = work(here, ask(here, T4, 1024))
    here.azure.advance(2)
    here.time.pass_(minutes=1)
    work(here, row)
    assert Subscription.objects.get().answered_at == here.time() != before
