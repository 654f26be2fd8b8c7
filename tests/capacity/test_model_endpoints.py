"""Models from a grant to Azure OpenAI and back: deployed, changed and purged by workers, in the sandbox."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from django.db import DatabaseError, transaction

from accounts.models import Team
from allocations import provisioners
from allocations.ends import actions as ends
from allocations.models import Allocation, Budget
from allocations.schedule import Phase
from audit.models import Event
from capacity.models import Meter, ModelAccount, ModelEndpoint, ModelQuota, Subscription
from capacity.openai import actions, quotas
from capacity.openai import reconcile as engine
from capacity.openai.states import State
from capacity.subscriptions import observing
from catalogue import actions as offering_actions
from connectors.azure.cognitive_services import AzureCognitiveServices
from notices.models import Notice
from reconciling import failpoints
from sandbox.world import group_id
from tests import factories
from tests.approvals import shop
from tests.capacity.connected import EASTUS, connected
from tests.capacity.models_in_azure import Models, models
from tests.capacity.test_books_and_azure import Crash, crashing
from tests.sandbox.azure.running import GROUP, SUBSCRIPTION, Running
from tests.scene import scene
from web.refusals import Refused

pytestmark = pytest.mark.django_db
EMBEDDING = "text-embedding-3-large"


@pytest.fixture
def here(azure: Running, monkeypatch: pytest.MonkeyPatch) -> Iterator[Models]:
    with connected(azure, monkeypatch):
        yield models(scene(), azure)


def read(here: Models) -> None:
    """Have the subscription read, with a cluster in eastus."""
    factories.cluster("dev-eastus", region="eastus", azure_id=EASTUS)
    observing.keep_known(now=here.time())
    observing.observe(SUBSCRIPTION, now=here.time)
    assert Subscription.objects.get().reachable


def let_go(here: Models, allocation: Allocation) -> None:
    """Have a grant ended before its date."""
    ends.release(
        allocation.pk,
        actor=here.scene.ada.as_actor(),
        now=here.time(),
        why="let go early",
    )


@pytest.mark.slow
def test_a_grant_is_deployed_for_the_teams_group_and_costs_from_then_on(
    here: Models,
) -> None:
    allocation = here.grant(30)
    assert (allocation.provisioner, allocation.charged_from) == ("openai", None)
    here.work()
    row, made = (
        ModelEndpoint.objects.select_related("account").get(),
        Allocation.objects.get(),
    )
    assert made.charged_from is not None
    assert made.endpoint == row
    assert (row.state, row.held, row.version, row.sku) == (
        State.READY,
        30,
        "2024-08-06",
        "Standard",
    )
    [account] = here.accounts
    assert here.deployed == {"gpt-4o": 30}
    assert here.callers == {group_id(1)}
    assert (account.is_open, account.has_keys) == (False, False)
    assert (
        row.account.endpoint
        == account.endpoint
        == f"https://{account.name}.openai.azure.com/"
    )
    assert account.name.endswith(f"-vision-{row.account.pk}")
    kinds = set(
        Event.objects.filter(subject_type="model_endpoint").values_list(
            "kind", flat=True
        )
    )
    assert kinds == {"model_endpoint.ready"}


@pytest.mark.slow
def test_more_of_the_same_model_grows_its_deployment_and_another_model_stands_beside_it(
    here: Models,
) -> None:
    here.grant(30)
    here.work()
    second = here.grant(20)
    here.grant(5, model=EMBEDDING)
    here.grant(7, deployment_type="GlobalStandard")
    here.work()
    assert here.deployed == {"gpt-4o": 50, EMBEDDING: 5, "gpt-4o_global": 7}
    assert len(here.accounts) == 1
    assert not Allocation.objects.filter(charged_from=None).exists()
    let_go(here, second)
    here.work()
    assert here.deployed["gpt-4o"] == 30


@pytest.mark.slow
def test_what_ends_is_deleted_and_purged_with_its_account(here: Models) -> None:
    first, second = here.grant(30), here.grant(5, model=EMBEDDING)
    here.work()
    let_go(here, first)
    here.work()
    assert here.deployed == {EMBEDDING: 5}
    let_go(here, second)
    here.work(rounds=40)
    assert here.accounts == []
    assert here.services.deleted_accounts() == []
    assert {one.state for one in ModelEndpoint.objects.all()} == {State.DELETED}
    account = ModelAccount.objects.get()
    assert (account.state, account.group, account.operation) == (
        State.DELETED,
        None,
        None,
    )
    usage = {one.name: one.used for one in here.services.usages("eastus")}
    assert usage["OpenAI.Standard.gpt-4o"] == 0


@pytest.mark.slow
def test_a_model_granted_anew_while_the_old_one_goes_takes_its_deployment_over(
    here: Models,
) -> None:
    first = here.grant(30)
    here.grant(5, model=EMBEDDING)
    here.work()
    let_go(here, first)
    here.grant(40)
    here.work()
    assert here.deployed == {"gpt-4o": 40, EMBEDDING: 5}
    rows = ModelEndpoint.objects.filter(model="gpt-4o").order_by("pk")
    assert [one.state for one in rows] == [State.DELETED, State.READY]
    assert len({one.account_id for one in rows}) == 1


@pytest.mark.slow
def test_a_quota_that_is_full_fails_the_grant_with_the_reason_and_frees_the_budget(
    here: Models,
) -> None:
    here.grant(300, model=EMBEDDING)
    here.work()
    before = sum(one.held_usd for one in Budget.objects.filter(team=here.scene.team))
    too_much = here.grant(100, model=EMBEDDING)
    assert (
        sum(one.held_usd for one in Budget.objects.filter(team=here.scene.team))
        > before
    )
    here.work()
    too_much.refresh_from_db()
    assert too_much.end_reason == Allocation.End.FAILED
    assert "quota" in too_much.failure.lower()
    after = sum(one.held_usd for one in Budget.objects.filter(team=here.scene.team))
    # The first one costs from when it is there, a little less than was set aside for it.
    assert after <= before
    assert here.deployed == {EMBEDDING: 300}
    row = ModelEndpoint.objects.get()
    assert (row.state, row.capacity, row.refused_capacity, row.refusal) == (
        State.READY,
        300,
        None,
        "",
    )
    assert Event.objects.filter(kind="model_endpoint.refused").exists()


def blocked_notices(here: Models) -> list[Notice]:
    found = Notice.objects.filter(kind="model_blocked", person=here.scene.priya)
    return list(found.order_by("pk"))


@pytest.mark.slow
@pytest.mark.parametrize("url", ["accounts/", "deployments/"])
@pytest.mark.parametrize(
    ("status", "code"),
    [
        (404, "SubscriptionNotFound"),
        (409, "MissingSubscriptionRegistration"),
        (403, "RequestDisallowedByPolicy"),
        (409, "OperationNotAllowed"),
    ],
)
def test_what_keeps_the_portal_out_fails_no_grant_and_is_told_to_platform_leads(
    here: Models, status: int, code: str, url: str
) -> None:
    words = "The portal may not do this here."
    here.azure.fault("PUT", url, status=status, code=code, message=words, times=9)
    allocation = here.grant()
    here.work(1)
    assert blocked_notices(here) == []
    for _ in range(5):
        here.time.pass_(minutes=11)
        here.work(1)
    allocation.refresh_from_db()
    row = ModelEndpoint.objects.get()
    assert (allocation.ended_at, row.refusal, row.state) == (None, "", State.PENDING)
    [notice] = blocked_notices(here)
    assert words in notice.said.sentence
    here.azure.admin("DELETE", "/sandbox/faults")
    actions.try_again(row.pk, by=here.scene.priya, now=here.time())
    here.work()
    assert here.deployed == {"gpt-4o": 30}
    assert len(blocked_notices(here)) == 1
    assert ModelAccount.objects.get().blocked_generation is None


def over_quota_after_a_minute(here: Models) -> tuple[Allocation, Allocation]:
    """Two grants of one model, 30 and 20, while Azure works on a deployment for both that it will refuse."""
    here.grant(5, model=EMBEDDING)
    here.work()
    error = {"code": "InsufficientQuota", "message": "This exceeds the quota."}
    here.azure.fault("PUT", "deployments/", operation={"seconds": 60, "error": error})
    grants = here.grant(30), here.grant(20)
    here.work(1)
    operation = ModelAccount.objects.get().operation or {}
    assert (operation["step"], operation["capacity"]) == ("deploy", 50)
    return grants


@pytest.mark.slow
def test_what_azure_refuses_after_a_while_fails_the_grant_that_was_too_much(
    here: Models,
) -> None:
    first, second = over_quota_after_a_minute(here)
    here.azure.advance(60)
    here.work()
    first.refresh_from_db()
    second.refresh_from_db()
    assert (first.end_reason, second.end_reason) == ("", Allocation.End.FAILED)
    assert "This exceeds the quota." in second.failure
    assert here.deployed == {"gpt-4o": 30, EMBEDDING: 5}


@pytest.mark.slow
@pytest.mark.parametrize("ended", [1, 2])
def test_what_azure_refuses_of_an_older_capacity_says_nothing_of_what_is_wanted_now(
    here: Models, ended: int
) -> None:
    first, second = over_quota_after_a_minute(here)
    for one in (second, first)[:ended]:
        let_go(here, one)
    here.azure.advance(60)
    here.work()
    assert not Allocation.objects.filter(end_reason=Allocation.End.FAILED).exists()
    assert not Event.objects.filter(kind="model_endpoint.refused").exists()
    kept = {"gpt-4o": 30} if ended == 1 else {}
    assert here.deployed == {EMBEDDING: 5, **kept}
    first.refresh_from_db()
    assert (first.charged_from is not None) == (ended == 1)
    assert ModelAccount.objects.get().message == ""


@pytest.mark.slow
def test_a_model_that_left_is_deleted_though_its_account_stays(here: Models) -> None:
    here.grant(30)
    leaving = here.grant(5, model=EMBEDDING)
    here.work()
    let_go(here, leaving)
    here.work()
    row = ModelEndpoint.objects.get(model=EMBEDDING)
    assert (row.state, row.held) == (State.DELETED, 0)
    gone = Event.objects.filter(kind="model_endpoint.gone")
    assert [one.subject_id for one in gone] == [str(row.pk)]
    assert here.deployed == {"gpt-4o": 30}


def scale_by_hand(here: Models, row: ModelEndpoint, capacity: int) -> None:
    """What somebody does past the portal with a deployment in the team's account."""
    [account] = here.accounts
    said = {"model": row.model, "version": row.version, "sku": row.sku}
    here.services.begin_deploy(
        GROUP, account.name, row.deployment, **said, capacity=capacity
    )


@pytest.mark.slow
def test_a_model_that_azure_scales_is_held_as_it_was_until_that_is_over(
    here: Models,
) -> None:
    here.grant(30)
    here.work()
    row = ModelEndpoint.objects.get()
    here.azure.pace(60)
    scale_by_hand(here, row, 7)
    here.time.pass_(minutes=6)
    here.work(2)
    row.refresh_from_db()
    assert (row.state, row.held) == (State.READY, 30)
    here.azure.pace(0)
    here.azure.advance(60)
    here.work()
    assert here.deployed == {"gpt-4o": 30}


@pytest.mark.slow
def test_a_model_that_azure_works_on_is_not_deleted_before_its_deployment_is(
    here: Models,
) -> None:
    here.grant(30)
    leaving = here.grant(5, model=EMBEDDING)
    here.work()
    stays, leaves = ModelEndpoint.objects.order_by("pk")
    scale_by_hand(here, stays, 60)
    here.azure.pace(60)
    scale_by_hand(here, leaves, 7)
    let_go(here, leaving)
    here.work(2)
    stays.refresh_from_db()
    leaves.refresh_from_db()
    assert (stays.held, leaves.state) == (60, State.DELETING)
    here.azure.pace(0)
    here.azure.advance(60)
    here.work()
    leaves.refresh_from_db()
    assert leaves.state == State.DELETED
    assert here.deployed == {"gpt-4o": 30}


@pytest.mark.slow
def test_one_model_that_is_refused_keeps_no_other_from_being_made(here: Models) -> None:
    bad, good = here.grant(400, model=EMBEDDING), here.grant(30)
    here.work()
    bad.refresh_from_db()
    good.refresh_from_db()
    assert bad.end_reason == Allocation.End.FAILED
    assert good.charged_from is not None
    assert here.deployed == {"gpt-4o": 30}


@pytest.mark.slow
def test_one_model_that_the_portal_may_not_deploy_keeps_no_other_from_being_made(
    here: Models,
) -> None:
    denied = {"status": 403, "code": "RequestDisallowedByPolicy", "times": 99}
    here.azure.fault("PUT", f"deployments/{EMBEDDING}", **denied)
    bad = here.grant(5, model=EMBEDDING)
    here.grant(30)
    here.work()
    for _ in range(4):
        here.time.pass_(minutes=11)
        here.work(1)
    bad.refresh_from_db()
    assert here.deployed == {"gpt-4o": 30}
    assert (bad.ended_at, bad.charged_from) == (None, None)
    assert len(blocked_notices(here)) == 1
    here.azure.admin("DELETE", "/sandbox/faults")
    here.time.pass_(minutes=11)
    here.work()
    assert here.deployed == {"gpt-4o": 30, EMBEDDING: 5}


def test_a_model_that_the_region_does_not_offer_fails_and_leaves_nothing(
    here: Models,
) -> None:
    offering_actions.change("openai", by=here.scene.priya, prices={"gpt-9": Decimal(1)})
    allocation = here.grant(2, model="gpt-9")
    here.work(rounds=40)
    allocation.refresh_from_db()
    assert "eastus offers no gpt-9" in allocation.failure
    assert here.accounts == []
    assert here.services.deleted_accounts() == []


@pytest.mark.slow
def test_an_account_that_was_deleted_by_hand_is_purged_and_made_again(
    here: Models,
) -> None:
    here.grant(30)
    here.work()
    [account] = here.accounts
    services = AzureCognitiveServices(here.azure.session())
    services.begin_delete_account(GROUP, account.name)
    assert [one.name for one in services.deleted_accounts()] == [account.name]
    here.time.pass_(minutes=6)
    here.work()
    assert here.deployed == {"gpt-4o": 30}
    assert here.callers == {group_id(1)}
    assert services.deleted_accounts() == []


@pytest.mark.slow
def test_another_group_of_the_team_may_call_instead_of_the_old_one(
    here: Models,
) -> None:
    here.grant(30)
    here.work()
    Team.objects.filter(pk=here.scene.team.pk).update(entra_group=group_id(2))
    actions.look_again(here.scene.team, now=here.time())
    here.work()
    assert here.callers == {group_id(2)}


@pytest.mark.slow
def test_a_group_that_azure_does_not_know_yet_is_granted_later(here: Models) -> None:
    Team.objects.filter(pk=here.scene.team.pk).update(
        entra_group="12345678-1234-4234-8234-123456789abc"
    )
    allocation = here.grant(30)
    here.work(rounds=5)
    status = provisioners.status(Allocation.objects.described().get(pk=allocation.pk))
    assert status.phase is Phase.STUCK
    assert status.message == (
        "Azure does not know the team’s group yet; it is told of a new group within minutes."
    )
    Team.objects.filter(pk=here.scene.team.pk).update(entra_group=group_id(3))
    here.time.pass_(minutes=11)
    here.work()
    assert here.callers == {group_id(3)}
    assert Allocation.objects.get().charged_from is not None


@pytest.mark.slow
def test_what_is_changed_in_azure_past_the_portal_is_put_right(here: Models) -> None:
    here.grant(30)
    here.work()
    [account] = here.accounts
    services = AzureCognitiveServices(here.azure.session())
    version = ModelEndpoint.objects.get().version
    services.begin_deploy(
        GROUP,
        account.name,
        "gpt-4o",
        model="gpt-4o",
        version=version,
        sku="Standard",
        capacity=99,
    )
    here.time.pass_(minutes=6)
    here.work()
    assert here.deployed == {"gpt-4o": 30}


def refuse(here: Models, path: str) -> None:
    """Have Azure refuse for good whatever is made there."""
    here.azure.fault(
        "PUT",
        path,
        status=400,
        code="NotSupported",
        message="No more here.",
        times=999,
    )


def shrunk_and_refused(here: Models) -> ModelEndpoint:
    """A model that is paid, of which somebody took two thirds away in Azure, which does not give them back."""
    here.grant(30)
    here.work()
    [account] = here.accounts
    here.services.begin_deploy(
        GROUP,
        account.name,
        "gpt-4o",
        model="gpt-4o",
        version=ModelEndpoint.objects.get().version,
        sku="Standard",
        capacity=10,
    )
    refuse(here, "deployments/")
    here.time.pass_(minutes=6)
    here.work(3)
    row = ModelEndpoint.objects.get()
    assert (row.state, row.held, row.is_refused) == (State.READY, 10, True)
    return row


@pytest.mark.slow
def test_what_was_paid_and_is_refused_is_tried_again_by_itself(here: Models) -> None:
    shrunk_and_refused(here)
    # What else is wanted goes before it.
    Allocation.objects.update(charged_from=here.time())
    here.azure.admin("DELETE", "/sandbox/faults")
    refuse(here, "deployments/gpt-4o")
    here.grant(5, model=EMBEDDING)
    here.work()
    assert here.deployed == {"gpt-4o": 10, EMBEDDING: 5}
    assert Event.objects.filter(kind="model_endpoint.refused").count() == 1
    here.azure.admin("DELETE", "/sandbox/faults")
    here.time.pass_(minutes=11)
    here.work()
    assert here.deployed == {"gpt-4o": 30, EMBEDDING: 5}
    row = ModelEndpoint.objects.get(model="gpt-4o")
    assert (row.held, row.refusal, row.refused_capacity) == (30, "", None)


@pytest.mark.slow
def test_what_was_paid_and_is_refused_is_tried_again_when_a_lead_says_so(
    here: Models,
) -> None:
    row = shrunk_and_refused(here)
    here.azure.admin("DELETE", "/sandbox/faults")
    actions.try_again(row.pk, by=here.scene.priya, now=here.time())
    assert not ModelEndpoint.objects.get().is_refused
    here.work()
    assert here.deployed == {"gpt-4o": 30}
    assert not Allocation.objects.exclude(ended_at=None).exists()


@pytest.mark.slow
def test_an_account_that_azure_refuses_to_make_anew_is_asked_for_ever_less_often(
    here: Models,
) -> None:
    here.grant(30)
    here.work()
    [account] = here.accounts
    here.services.begin_delete_account(GROUP, account.name)
    refuse(here, "accounts/[^/]+$")
    here.time.pass_(minutes=6)
    start, tries, rows = here.time(), 0, ModelAccount.objects.in_azure()
    while here.time() < start + timedelta(minutes=2):
        for pk in rows.due(here.time()).values_list("pk", flat=True):
            tries += engine.reconcile(pk, now=here.time)
        here.time.pass_(seconds=2)
    assert 3 <= tries <= 9
    row = ModelEndpoint.objects.select_related("account").get()
    assert (row.held, row.is_refused) == (0, True)
    assert "No more here." in row.refusal
    assert Event.objects.filter(kind="model_endpoint.refused").count() == 1
    here.azure.admin("DELETE", "/sandbox/faults")
    here.time.at = row.account.requeue_at
    here.work()
    assert here.deployed == {"gpt-4o": 30}
    row.refresh_from_db()
    assert (row.held, row.is_refused) == (30, False)


def deploy_by_hand(here: Models) -> None:
    """What somebody does past the portal in the team's account."""
    [account] = here.accounts
    said = {"model": "gpt-4o", "version": "2024-08-06", "sku": "Standard"}
    here.services.begin_deploy(GROUP, account.name, "gpt-4o", **said, capacity=30)


@pytest.mark.slow
def test_a_deployment_that_failed_is_not_held_and_costs_nothing(here: Models) -> None:
    failed = {"error": {"code": "AllocationFailed", "message": "It broke."}}
    allocation = here.grant(30)
    here.azure.fault("PUT", "deployments/", operation=failed, times=99)
    here.work(rounds=5)
    assert here.deployed == {}
    here.azure.admin("DELETE", "/sandbox/faults")
    deploy_by_hand(here)
    here.azure.fault("PUT", "deployments/", operation=failed, times=99)
    deploy_by_hand(here)
    here.time.pass_(minutes=11)
    here.work()
    [account] = here.accounts
    found = here.services.deployments(GROUP, account.name)
    assert [(one.capacity, one.state) for one in found] == [(30, "Failed")]
    row = ModelEndpoint.objects.get()
    allocation.refresh_from_db()
    assert (row.state, row.held) == (State.PENDING, 0)
    assert allocation.charged_from is None
    here.azure.admin("DELETE", "/sandbox/faults")
    for _ in range(3):
        here.time.pass_(minutes=11)
        here.work()
    assert Allocation.objects.get(pk=allocation.pk).charged_from is not None
    assert ModelEndpoint.objects.get().held == 30


@pytest.mark.slow
@pytest.mark.parametrize(
    "point",
    [
        "model_account.make_account",
        "model_account.grant_role",
        "model_account.deploy",
        "model_account.stored",
        "model_account.delete_deployment",
        "model_account.delete_account",
        "model_account.purge",
    ],
)
def test_a_worker_that_dies_in_the_middle_is_followed_by_one_that_goes_on(
    here: Models, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.azure.pace(20)
    with crashing(monkeypatch):
        monkeypatch.setenv("FAILPOINT", point)
        crashes = _crashes(here, lambda: here.grant(30), monkeypatch)
        assert here.deployed == {"gpt-4o": 30}
        assert here.callers == {group_id(1)}
        crashes += _crashes(
            here, lambda: let_go(here, Allocation.objects.get()), monkeypatch
        )
    assert crashes == 1
    assert here.accounts == []
    assert here.services.deleted_accounts() == []


def _crashes(
    here: Models, deed: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> int:
    """Do something and let workers go on, each of whom may end in the middle; how many did."""
    deed()
    crashes = 0
    for _ in range(30):
        try:
            here.work(1)
        except Crash:
            crashes += 1
            monkeypatch.delenv("FAILPOINT")
            failpoints.forget()
            here.time.pass_(minutes=3)
        here.azure.advance(30)
        here.time.pass_(seconds=30)
    return crashes


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_books_and_azure_agree_whatever_is_done_and_fails(
    here: Models, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = Random(seed)
    monkeypatch.setattr(engine, "_random", Random(seed))
    story: list[str] = [f"seed {seed}"]
    for _ in range(10):
        story.append(_deed(here, draw))
        here.work(draw.randrange(1, 4))
        here.time.pass_(seconds=draw.choice((1, 20, 120)))
        here.azure.advance(draw.choice((0, 5, 30)))
    here.azure.admin("DELETE", "/sandbox/faults")
    for _ in range(6):
        here.azure.advance(3600)
        here.time.pass_(minutes=15)
        here.work(30)
    told = "\n".join([*story, *map(str, ModelEndpoint.objects.values())])
    live = (
        Allocation.objects.live()
        .filter(endpoint__isnull=False)
        .select_related("endpoint")
    )
    wanted: dict[str, int] = {}
    for one in live:
        assert one.endpoint is not None
        wanted[one.endpoint.deployment] = (
            wanted.get(one.endpoint.deployment, 0) + one.count
        )
    assert here.deployed == wanted, told
    assert len(here.accounts) == (1 if wanted else 0), told
    assert here.services.deleted_accounts() == [], told
    unfinished = ModelEndpoint.objects.exclude(state__in=(State.READY, State.DELETED))
    assert not unfinished.exists(), told


def _deed(here: Models, draw: Random) -> str:
    """One thing that people do, or that goes wrong."""
    match draw.choice(("grant", "grant", "end", "fail", "fail")):
        case "grant":
            model = draw.choice(("gpt-4o", EMBEDDING))
            try:
                here.grant(
                    draw.choice((10, 60, 300)) if model == EMBEDDING else 10,
                    model=model,
                    days=2,
                )
            except Refused as refusal:
                return refusal.message
            return f"grant {model}"
        case "end":
            rows = list(
                Allocation.objects.live().filter(endpoint__isnull=False).order_by("pk")
            )
            if rows:
                let_go(here, draw.choice(rows))
            return "end"
    method, path, what = draw.choice(
        (
            ("PUT", "deployments/", {"drop": True}),
            ("PUT", "deployments/", {"status": 503, "retry_after": 0}),
            ("PUT", "accounts/[^/]*$", {"drop": True}),
            ("PUT", "roleAssignments", {"status": 500, "retry_after": 0}),
            ("DELETE", "deployments/", {"drop": True}),
            ("DELETE", "accounts/[^/]*$", {"drop": True}),
            ("DELETE", "deletedAccounts", {"status": 500, "retry_after": 0}),
            ("GET", "CognitiveServices", {"truncate": 20}),
            ("GET", "operations", {"status": 404}),
        )
    )
    here.azure.fault(method, path, times=draw.choice((1, 3)), **what)
    return f"{method} {path} {what}"


def test_quota_is_read_by_region_and_metered(here: Models) -> None:
    read(here)
    row = ModelQuota.objects.get(region="eastus", model="gpt-4o", sku="Standard")
    assert (row.version, row.limit, row.left) == ("2024-08-06", 450, 450)
    assert row.sentence == "450 of 450 thousand tokens a minute are left in eastus"
    meter = Meter.objects.get(
        key__endswith="openai.standard.gpt-4o", title="gpt-4o (Standard) in eastus"
    )
    assert (meter.limit, meter.used, meter.unit) == (450, 0, "k tokens a minute")


def test_ways_to_deploy_that_count_no_tokens_are_passed_over(here: Models) -> None:
    at = "Microsoft.CognitiveServices/locations/eastus"
    skus = [
        {"name": "Standard", "usageName": "OpenAI.Standard.gpt-4o"},
        # The quota of all models together, whose name has two parts.
        {"name": "ProvisionedManaged", "usageName": "OpenAI.ProvisionedManaged"},
    ]
    model = {
        "format": "OpenAI",
        "name": "gpt-4o",
        "version": "2024-08-06",
        "skus": skus,
    }
    offered = {"value": [{"kind": "OpenAI", "skuName": "S0", "model": model}]}
    used = {
        "value": [
            {
                "name": {"value": one["usageName"]},
                "currentValue": 10.0,
                "limit": 100.0,
                "unit": "Count",
            }
            for one in skus
        ]
    }
    here.azure.fault("GET", f"{at}/models", status=200, body=json.dumps(offered))
    here.azure.fault("GET", f"{at}/usages", status=200, body=json.dumps(used))
    read(here)
    assert Subscription.objects.get().reachable
    [row] = ModelQuota.objects.filter(region="eastus")
    assert (row.sku, row.left) == ("Standard", 90)
    assert not Meter.objects.filter(key__contains="provisioned").exists()


@pytest.mark.slow
def test_more_than_is_left_is_refused_before_it_is_sent(here: Models) -> None:
    read(here)
    here.grant(30)
    here.work()
    here.time.pass_(minutes=11)
    observing.observe(SUBSCRIPTION, now=here.time)
    with pytest.raises(Refused) as refusal:
        here.grant(421, days=0.5)
    assert refusal.value.message == (
        "420 of 450 thousand tokens a minute are left in eastus for gpt-4o: ask for 420 or fewer, or another region."
    )
    assert refusal.value.field == "thousand_tokens_per_minute"
    here.grant(420, days=0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": "gpt-9"}, "eastus does not offer gpt-9."),
        (
            {"model": "text-embedding-3-large", "deployment_type": "GlobalStandard"},
            "eastus does not offer text-embedding-3-large as Global Standard. Choose the other type of deployment.",
        ),
    ],
)
def test_what_a_region_that_was_read_does_not_offer_is_refused(
    here: Models, changes: dict[str, Any], words: str
) -> None:
    read(here)
    offering_actions.change("openai", by=here.scene.priya, prices={"gpt-9": Decimal(1)})
    with pytest.raises(Refused) as refusal:
        here.grant(1, **changes)
    assert refusal.value.message == words


def test_models_that_may_not_be_read_keep_nothing_else_from_being_read(
    here: Models,
) -> None:
    read(here)
    here.azure.fault(
        "GET",
        "CognitiveServices/locations",
        status=403,
        code="AuthorizationFailed",
        times=9,
    )
    here.time.pass_(minutes=11)
    observing.observe(SUBSCRIPTION, now=here.time)
    assert Subscription.objects.get().reachable
    assert not ModelQuota.objects.exists()
    quotas.check("eastus", "gpt-4o", "Standard", 9999)


def test_a_seat_without_azure_is_carried_out_by_a_person() -> None:
    asked = shop.granted(scene(), "openai")
    assert Allocation.objects.get(hold__request=asked).provisioner == "manual"


READY = {"state": "ready", "ready_at": "2026-11-20T12:00Z"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        {"state": "gone"},
        {"state": "ready"},
        {"sku": "Batch"},
        {"capacity": 0},
        {"state": "deleting"},
        {"refusal": "Because."},
        {"refused_capacity": 30},
        {"refusal": "Because.", "refused_capacity": 7},
        {"state": "deleted", "deleted_at": "2026-11-20T12:00Z", "capacity": 0},
    ],
    ids=str,
)
def test_the_database_refuses_a_model_endpoint_that_makes_no_sense(
    here: Models, values: dict[str, Any]
) -> None:
    here.grant(30)
    with pytest.raises(DatabaseError), transaction.atomic():
        ModelEndpoint.objects.update(**values)


@pytest.mark.slow
@pytest.mark.parametrize(
    "values",
    [
        {"state": "gone"},
        {"state": "ready"},
        READY,
        {"deleted_at": "2026-11-20T12:00Z"},
        {"state": "deleted", "deleted_at": "2026-11-20T12:00Z"},
        {"observed_generation": 99},
    ],
    ids=str,
)
def test_the_database_refuses_an_account_that_makes_no_sense(
    here: Models, values: dict[str, Any]
) -> None:
    here.grant(30)
    with pytest.raises(DatabaseError), transaction.atomic():
        ModelAccount.objects.update(**values)


def test_there_is_one_account_and_one_deployment_of_a_model_for_a_team_in_a_region(
    here: Models,
) -> None:
    here.grant(30)
    account, endpoint = ModelAccount.objects.get(), ModelEndpoint.objects.get()
    for row in (account, endpoint):
        row.pk = None
        with pytest.raises(DatabaseError), transaction.atomic():
            row.save(force_insert=True)


@pytest.mark.slow
def test_what_is_deleted_stays_so(here: Models) -> None:
    allocation = here.grant(30)
    here.work()
    let_go(here, allocation)
    here.work(rounds=40)
    for rows in (ModelEndpoint.objects.all(), ModelAccount.objects.all()):
        with pytest.raises(DatabaseError), transaction.atomic():
            rows.update(state="pending", deleted_at=None)
