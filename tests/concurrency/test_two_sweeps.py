"""Two sweeps at the same moment, or a sweep beside a vote: everything is done once, and nobody is told twice."""

from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.roles import Role
from approvals.decisions import escalation
from approvals.decisions.actions import approve, reject
from approvals.fulfilment import free_again
from approvals.models import Request
from audit.models import Event
from fleet.models import Flavor
from notices.models import Notice
from policy.document import LEADS, Policy, Route
from tests import factories
from tests.concurrency.books import wrong_in_the_books
from tests.concurrency.together import together
from tests.scene import Scene
from tests.scene import scene as make
from web.refusals import Refused

AT_ONCE = 4


@pytest.fixture
def scene(transactional_db: None) -> Scene:
    return make()


@pytest.mark.slow
def test_sweeps_at_once_remind_pass_on_and_offer_once(scene: Scene) -> None:
    now = timezone.now()
    waiting = [
        factories.request(
            scene.ada,
            scene.tenancy,
            scene.flavor,
            gpus=3,
            days=20,
            now=now - timedelta(days=3),
        )
        for _ in range(3)
    ]
    refused = factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=4, now=now)
    reject(
        refused.pk,
        by=scene.priya,
        expected_version=1,
        reason="Full.",
        because="capacity",
        now=now,
    )
    Notice.objects.all().delete()

    def sweep() -> None:
        for pk in escalation.due(now):
            escalation.look(pk, now=now)
        free_again.sweep(now)

    together(*[sweep] * AT_ONCE)
    kinds = Counter(
        Event.objects.filter(actor_name="Quartermaster").values_list("kind", flat=True)
    )
    assert kinds["request.reminded"] == kinds["request.escalated"] == len(waiting)
    assert kinds["request.offered_again"] == 1
    told = Counter(Notice.objects.values_list("kind", flat=True))
    assert told == {
        "request_reminder": 6,
        "request_escalated": 3,
        "request_offered_again": 1,
    }
    assert wrong_in_the_books() == []


@pytest.mark.slow
def test_a_vote_and_a_sweep_do_not_wait_for_each_other_forever(scene: Scene) -> None:
    now = timezone.now()
    # One vote decides each, however much the team asks for together.
    one_step = Policy(routes=(Route(name="all", steps=(LEADS,)),))
    factories.policy(one_step, now=now - timedelta(days=4))
    requests = [
        factories.request(
            scene.ada,
            scene.tenancy,
            scene.flavor,
            gpus=3,
            days=20,
            now=now - timedelta(days=3),
        )
        for _ in range(4)
    ]

    def sweep() -> None:
        for pk in escalation.due(now):
            escalation.look(pk, now=now)

    def decide() -> None:
        for request in requests:
            approve(request.pk, by=scene.priya, expected_version=1, now=now)

    together(sweep, decide, sweep)
    assert set(Request.objects.values_list("state", flat=True)) == {"approved"}
    assert wrong_in_the_books() == []


@pytest.mark.slow
def test_sixty_four_asks_at_once_tell_everybody_without_a_deadlock(
    scene: Scene,
) -> None:
    Flavor.objects.update(gpus_total=1000)
    leads = [
        scene.priya,
        scene.marcus,
        *(factories.person("", Role.PLATFORM_LEAD) for _ in range(3)),
    ]
    refused: list[Refused] = []

    def ask() -> None:
        try:
            factories.request(scene.ada, scene.tenancy, scene.flavor, gpus=4)
        except Refused as refusal:
            refused.append(refusal)

    together(*[ask] * 64)
    waiting = Request.objects.filter(state="waiting").count()
    assert (waiting + len(refused), refused) == (64, [])
    assert Notice.objects.filter(kind="request_waiting").count() == 64 * len(leads)
    assert wrong_in_the_books() == []
