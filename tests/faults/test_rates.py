"""How many calls a person may make is counted over all web processes together, not by each."""

from itertools import cycle

import pytest

from accounts.models import User
from tests import factories
from tests.faults.calling import caller
from tests.faults.running import Portal

pytestmark = pytest.mark.slow

LIMIT = 12


def test_a_person_who_calls_two_web_servers_in_turns_has_one_limit(
    portal: Portal,
) -> None:
    portal.environment = {**portal.environment, "QM_READ_RATE": f"{LIMIT}/h"}
    ada, other = factories.person(), factories.person()
    servers = []
    for _ in range(2):
        portal.web(workers=1)
        servers.append(portal.url)

    def answers(who: User, calls: int) -> list[int]:
        doors = cycle([caller(who, url) for url in servers])
        return [next(doors).get("me/").status_code for _ in range(calls)]

    assert answers(ada, LIMIT + 4) == [200] * LIMIT + [429] * 4
    assert answers(other, 2) == [200, 200]
    refused = caller(ada, servers[0]).get("me/")
    assert 0 < int(refused.headers["Retry-After"]) <= 3600
