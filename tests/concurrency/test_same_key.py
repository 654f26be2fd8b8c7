"""One Idempotency-Key is one effect, however many calls carry it at the same moment."""

from collections import Counter
from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import Idempotency
from allocations.models import Allocation
from approvals.models import Request
from tests import factories
from tests.concurrency.books import wrong_in_the_books
from tests.faults.calling import at_once, caller
from tests.faults.running import Portal

pytestmark = pytest.mark.slow

REPEATS = 64


def test_sixty_four_calls_with_one_key_make_one_request_and_get_one_answer(
    web: Portal,
) -> None:
    team, flavor = factories.team(), factories.flavor()
    factories.tenancy(team, flavor.cluster)
    who = caller(factories.person(teams=[team]), web.url)
    body = {
        "team": team.slug,
        "flavor": f"{flavor.cluster.name}/{flavor.name}",
        "gpus": 1,
        "until": (timezone.now() + timedelta(days=1)).isoformat(),
        "purpose": "notebook",
    }
    answers = at_once([lambda: who.post("requests/", body, key="the-same")] * REPEATS)
    assert Counter(answer.status_code for answer in answers) == {201: REPEATS}
    first = answers[0].json()
    assert [answer.json() for answer in answers] == [first] * REPEATS
    assert sum("Idempotency-Replayed" not in answer.headers for answer in answers) == 1
    assert (
        Request.objects.count()
        == Allocation.objects.count()
        == Idempotency.objects.count()
        == 1
    )
    assert wrong_in_the_books() == []
