"""How many statements an ask takes: they are its time, and what every other ask of the same budget waits for."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from approvals.models import Request
from approvals.states import State
from tests import factories
from tests.calling import Caller

pytestmark = pytest.mark.django_db

MOST_OF_THE_API, MOST_OF_THE_PAGE = 50, 49
TABLE = re.compile(r'(?:FROM|INTO|UPDATE) "(\w+)"')


@pytest.fixture
def ada() -> User:
    """The one member of a team that is on a cluster with A100."""
    team, flavor = (
        factories.team("Vision"),
        factories.flavor(factories.cluster("training-eastus"), "a100"),
    )
    factories.tenancy(team, flavor.cluster)
    return factories.person("Ada Okafor", teams=[team])


def frequent(seen: Sequence[dict[str, str]]) -> str:
    """How often the most frequent tables are named first in a statement, for whoever has to make them fewer."""
    first = (TABLE.search(each["sql"]) for each in seen)
    tables = Counter(found[1] if found else "savepoints and others" for found in first)
    return ", ".join(f"{table} {number}" for table, number in tables.most_common(12))


def most(usual: int, until: datetime) -> int:
    """How many it may take: one more where it reaches into the next month, whose budget it is held against, too."""
    return usual + (until.month != timezone.now().month)


def test_an_ask_over_the_api_takes_few_statements(ada: User) -> None:
    caller, until = Caller(ada), timezone.now() + timedelta(days=2)
    body = {
        "team": "vision",
        "flavor": "training-eastus/a100",
        "gpus": 1,
        "until": until.isoformat(),
        "purpose": "training",
    }
    assert caller.post("requests/", body).status_code == 201
    with CaptureQueriesContext(connection) as seen:
        answer = caller.post("requests/", body)
    assert answer.json()["state"] == "approved", answer.content
    assert len(seen) <= most(MOST_OF_THE_API, until), frequent(seen.captured_queries)


def test_an_ask_on_the_page_takes_few_statements(ada: User, client: Client) -> None:
    client.force_login(ada)
    until = timezone.now() + timedelta(days=2)
    form = {
        "team": "vision",
        "flavor": "training-eastus/a100",
        "gpus": "1",
        "until": until.strftime("%Y-%m-%dT%H:%M"),
        "purpose": "training",
        "reason": "",
    }
    assert client.post("/requests/new", form | {"token": "first"}).status_code == 302
    with CaptureQueriesContext(connection) as seen:
        response = client.post("/requests/new", form | {"token": "second"})
    assert response.status_code == 302, response.content
    assert Request.objects.latest("pk").state == State.APPROVED
    assert len(seen) <= most(MOST_OF_THE_PAGE, until), frequent(seen.captured_queries)
