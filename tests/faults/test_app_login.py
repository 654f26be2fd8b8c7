"""The whole product on a database login that owns nothing and may only add to what is append-only."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts.roles import Role
from audit.models import Event
from portal.postgres.grants import grant
from tests import factories
from tests.faults.calling import caller
from tests.faults.conftest import installed
from tests.faults.running import Portal, environment
from tests.faults.tenancies import are_true, wanted
from tests.faults.world import World
from tests.services.process import wait_until

pytestmark = pytest.mark.slow

LOGIN = "quartermaster_app"
MAKE = f"DO $$ BEGIN CREATE ROLE {LOGIN} LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"


@pytest.fixture
def restricted(
    transactional_db: None, tmp_path: Path, world: World
) -> Iterator[Portal]:
    """An installation that signs in at the test's database as the portal's own login."""
    with connection.cursor() as cursor:
        cursor.execute(MAKE)
        with transaction.atomic():
            assert "audit_event" in grant(connection, LOGIN)
    values = environment(tmp_path, kubeconfigs=world.folder)
    user = connection.settings_dict["USER"]
    values["QM_DATABASE_URL"] = values["QM_DATABASE_URL"].replace(
        f"//{user}@", f"//{LOGIN}@"
    )
    with installed(tmp_path, world, values) as installation:
        yield installation


def test_asking_deciding_carrying_out_and_giving_back_need_no_more_rights(
    restricted: Portal, world: World
) -> None:
    [tenancy] = wanted(world, 1)
    restricted.web(workers=1)
    restricted.worker(wait=True)
    ada = caller(factories.person("Ada", teams=[tenancy.team]), restricted.url)
    priya = caller(factories.person("Priya", Role.PLATFORM_LEAD), restricted.url)
    wish: dict[str, Any] = {
        "team": tenancy.team.slug,
        "flavor": f"{world.name}/a100-80gb",
        "purpose": "training",
        "until": (timezone.now() + timedelta(days=1)).isoformat(),
        "reason": "Pretrain on the November data.",
    }
    small = ada.post("requests/", wish | {"gpus": 1})
    assert small.status_code == 201, small.text
    large = ada.post("requests/", wish | {"gpus": 4})
    assert large.status_code == 201, large.text
    number = large.json()["id"]
    assert ada.post(f"requests/{number}/comments/", {"text": "Today, please."}).ok
    seen = priya.get(f"requests/{number}/").headers["ETag"]
    approved = priya.post(f"requests/{number}/approve/", {"reason": "Fine."}, seen=seen)
    assert approved.status_code == 200, approved.text
    wait_until(lambda: are_true([tenancy]), what="the GPUs to be true")
    held = ada.get("allocations/").json()["results"]
    assert sorted(row["gpus"] for row in held) == [1, 4]
    given = ada.post(f"allocations/{held[0]['id']}/give-back/", {})
    assert given.ok, given.text
    wait_until(lambda: are_true([tenancy]), what="the end to be true")
    assert priya.get("events/verify/").json()["broken_at"] is None
    assert Event.objects.count() > 5
