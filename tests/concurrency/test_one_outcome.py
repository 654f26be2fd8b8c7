"""A request that is approved, rejected, changed and withdrawn at the same moment has one outcome."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.roles import Role
from approvals.models import Request
from approvals.states import State
from audit.events import Kind
from audit.models import Event
from policy.document import LEADERSHIP, LEADS, Policy, Route, StepPlan
from tests import factories
from tests.concurrency.books import wrong_in_the_books
from tests.faults.calling import Caller, at_once, caller
from tests.faults.running import Portal

pytestmark = pytest.mark.slow

ROUNDS = 8
OUTCOMES = {
    "approve": State.APPROVED,
    "reject": State.REJECTED,
    "change": State.WAITING,
    "withdraw": State.WITHDRAWN,
}
DECIDED = (Kind.REQUEST_APPROVED, Kind.REQUEST_REJECTED, Kind.REQUEST_WITHDRAWN)


@pytest.mark.parametrize(
    ("steps", "outcomes"),
    [
        pytest.param((LEADS,), OUTCOMES, id="one vote decides"),
        pytest.param(
            (LEADS, LEADERSHIP),
            OUTCOMES | {"approve": State.WAITING},
            id="two votes decide",
        ),
    ],
)
def test_approving_rejecting_changing_and_withdrawing_at_once_has_one_outcome(
    web: Portal, steps: tuple[StepPlan, ...], outcomes: dict[str, State]
) -> None:
    # Named outright: the usual routes ask for a second vote as soon as the rounds add up to enough.
    factories.policy(
        Policy(routes=(Route(name="all", steps=steps),)), now=timezone.now()
    )
    team, flavor = factories.team(), factories.flavor(gpus_total=100)
    factories.tenancy(team, flavor.cluster)
    asker = caller(factories.person(teams=[team]), web.url)
    approver, rejecter = (
        caller(factories.person("", Role.PLATFORM_LEAD), web.url) for _ in range(2)
    )
    body = {
        "team": team.slug,
        "flavor": f"{flavor.cluster.name}/{flavor.name}",
        "gpus": 4,
        "until": (timezone.now() + timedelta(days=1)).isoformat(),
        "purpose": "training",
        "reason": "Three people change their minds at once.",
    }
    seen: set[str] = set()
    for _ in range(ROUNDS):
        made = asker.post("requests/", body).json()
        assert made["state"] == State.WAITING, made
        seen.add(
            one_outcome(
                made["id"], outcomes, asker=asker, approver=approver, rejecter=rejecter
            )
        )
    assert wrong_in_the_books() == []
    assert seen <= set(OUTCOMES)


def one_outcome(
    number: int,
    outcomes: dict[str, State],
    *,
    asker: Caller,
    approver: Caller,
    rejecter: Caller,
) -> str:
    """Let the three loose on one request; the name of the one that took effect last."""
    path = f"requests/{number}"
    etag = approver.get(f"{path}/").headers["ETag"]
    answers = dict(
        zip(
            OUTCOMES,
            at_once(
                [
                    lambda: approver.post(f"{path}/approve/", {}, seen=etag),
                    lambda: rejecter.post(
                        f"{path}/reject/", {"reason": "Not this week."}, seen=etag
                    ),
                    lambda: asker.patch(f"{path}/", {"spec": {"gpus": 5}}, seen=etag),
                    lambda: asker.post(f"{path}/withdraw/", {}),
                ]
            ),
            strict=True,
        )
    )
    won = [name for name, answer in answers.items() if answer.ok]
    said = {
        name: (answer.status_code, answer.text[:200])
        for name, answer in answers.items()
    }
    # Withdrawing names no version, so that it may come after what leaves the request waiting: a change, the first of
    # two votes. Whatever was seen is decided once.
    waits = [name for name in won if outcomes[name] == State.WAITING]
    assert len(won) == 1 or won == [*waits[:1], "withdraw"], said
    assert all(answers[name].json()["state"] == outcomes[name] for name in won), said
    assert {answer.status_code for answer in answers.values() if not answer.ok} <= {
        403,
        409,
        412,
    }, said
    request = Request.objects.get(pk=number)
    assert request.state == outcomes[won[-1]], said
    events = Event.objects.about("request", number).filter(kind__in=DECIDED)
    assert events.count() == (request.state != State.WAITING), said
    assert request.content_version == (2 if "change" in won else 1), said
    return won[-1]
