"""The release before goes on working on the tables of this one: it misses nothing, and need write nothing new."""

import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, models
from django.db.migrations import Migration, operations
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from allocations.models import Allocation
from provisioning.models import Tenancy
from tests.faults.databases import moved
from tests.services.plugin import lent
from tests.services.postgres import Postgres
from tests.services.process import wait_until

# The newest migration of each package in the release before this one. Its processes may still run while the newer ones
# are made, and after: a deployment replaces them one by one.
BEFORE = [
    ("accounts", "0003_one_stand_in_at_a_time"),
    ("allocations", "0004_days_of_use"),
    ("approvals", "0003_what_was_said_is_never_changed"),
    ("audit", "0004_stand_ins_tiers_and_more"),
    ("fleet", "0001_clusters_and_flavors"),
    ("notices", "0001_notices_and_deliveries"),
    ("onboarding", "0001_onboardings"),
    ("provisioning", "0002_what_is_in_use"),
]
FRAMEWORK = ["contenttypes", "auth", "sessions"]
# What no default can give, because it depends on another column, a trigger does.
GIVEN_BY_A_TRIGGER = {("allocation", "kept_until"), ("allocation", "usd_per_hour")}
BREAKING = (operations.RemoveField, operations.RenameField, operations.DeleteModel, operations.RenameModel)
NAME = "old"


def newer() -> Iterator[tuple[str, Migration]]:
    """The migrations that the release before does not know."""
    loader = MigrationLoader(None)
    known = {key for leaf in BEFORE for key in loader.graph.forwards_plan(leaf)}
    for key, migration in sorted(loader.disk_migrations.items()):
        if key not in known and key[0] in dict(BEFORE):
            yield ".".join(key), migration


def fields_of_old_tables(migration: Migration) -> Iterator[tuple[str, str, Any, Any]]:
    """Model, name, field and the field before (None for a new one) of what changes in a table that there was before."""
    old = MigrationLoader(None).project_state(BEFORE).models
    for op in migration.operations:
        if isinstance(op, operations.AddField | operations.AlterField):
            table = old.get((migration.app_label, op.model_name_lower))
            if table is not None:
                yield op.model_name_lower, op.name, op.field, table.fields.get(op.name)


def test_nothing_is_taken_away_that_the_release_before_uses() -> None:
    found = list(newer())
    assert found
    assert [(name, op) for name, each in found for op in each.operations if isinstance(op, BREAKING)] == []


def test_the_database_fills_what_the_release_before_does_not_write() -> None:
    missing = {
        (model, name)
        for _, migration in newer()
        for model, name, added, before in fields_of_old_tables(migration)
        if before is None and not added.null and added.db_default is models.NOT_PROVIDED
    }
    assert missing == GIVEN_BY_A_TRIGGER


def test_no_column_that_may_be_empty_is_made_one_that_may_not() -> None:
    for name, migration in newer():
        for model, changed_name, changed, before in fields_of_old_tables(migration):
            if before is not None and before.null:
                assert changed.null, f"{name}: {model}.{changed_name}"


@dataclass
class OldRelease:
    """What the processes of the release before do to the tables, by its own idea of them."""

    apps: Any
    rounds: int = 0
    longest: float = 0.0
    errors: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def model(self, app: str, name: str) -> Any:
        """A model as that release has it."""
        return self.apps.get_model(app, name).objects

    def run(self) -> None:
        """Work until it is over."""
        while not self.over.is_set():
            began = time.monotonic()
            try:
                self.work()
            except Exception as error:
                self.errors.append(f"{type(error).__name__}: {error}")
            self.longest = max(self.longest, time.monotonic() - began)
            self.rounds += 1
        connection.close()

    def work(self) -> None:
        """Bring a team on board, grant it a GPU that it gives back, and read everything."""
        now, word = timezone.now(), uuid.uuid4().hex[:12]
        tenancy = self.tenancy(word, now)
        flavor = self.model("fleet", "Flavor").create(
            cluster=tenancy.cluster,
            name="a100",
            product="A100",
            memory_gb=80,
            gpus_per_node=8,
            price_per_gpu_hour=Decimal(3),
        )
        granted = self.model("allocations", "Allocation").create(
            team=tenancy.team,
            tenancy=tenancy,
            flavor=flavor,
            reference=f"R-{word}",
            gpus=1,
            price_per_gpu_hour=Decimal(3),
            starts_at=now,
            until=now + timedelta(days=1),
        )
        tenancy.generation, tenancy.lease_no = 1, 1
        tenancy.save()
        granted.ended_at, granted.end_reason = now, "returned"
        granted.save()
        for app, _ in BEFORE:
            for model in self.apps.get_app_config(app).get_models():
                list(model.objects.order_by()[:3])

    def tenancy(self, word: str, now: datetime) -> Any:
        """A new team's place on a new cluster."""
        person = self.model("accounts", "User").create(
            tid=uuid.uuid4(),
            username=f"{word}@example.com",
            name=word,
            groups_known_at=now,
            managers_known_at=now,
        )
        team = self.model("accounts", "Team").create(
            slug=f"t{word}",
            name=word,
            entra_group=uuid.uuid4(),
            entra_group_name=word,
            cost_centre="CC",
            created_by=person,
        )
        cluster = self.model("fleet", "Cluster").create(
            name=f"c{word}", title=word, region="eastus", purpose="training"
        )
        return self.model("provisioning", "Tenancy").create(
            team=team,
            cluster=cluster,
            project=self.model("accounts", "Project").create(team=team, slug="main"),
            environment="dev",
            namespace=f"qm-{word}",
            next_look_at=now,
        )


@pytest.fixture
def old_tables(django_db_blocker: DjangoDbBlocker) -> Iterator[Postgres]:
    """A server whose database is as the release before left it."""
    with django_db_blocker.unblock(), lent(Postgres) as server:
        server.execute(f"CREATE DATABASE {NAME}")
        with moved(server, NAME):
            for app in FRAMEWORK:
                call_command("migrate", app, verbosity=0)
            for app, name in BEFORE:
                call_command("migrate", app, name, verbosity=0)
            yield server


@pytest.mark.long
def test_the_release_before_works_while_and_after_the_tables_change_under_it(old_tables: Postgres) -> None:
    old = OldRelease(MigrationLoader(connection).project_state(BEFORE).apps)
    threads = [threading.Thread(target=old.run) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: old.rounds > 5, what="the release before to work")
        call_command("migrate", verbosity=0)
        after = timezone.now()
        then = old.rounds
        wait_until(lambda: old.rounds > then + 10, what="the release before to go on")
    finally:
        old.over.set()
        for thread in threads:
            thread.join()
    assert old.errors == []
    assert old.longest < 3
    assert Allocation.objects.filter(starts_at__gt=after).exists()
    assert not Allocation.objects.exclude(kept_until=models.F("until")).exists()
    assert set(Tenancy.objects.values_list("stage", "is_protected", "weight", "isolation", "stop")) == {
        ("here", True, 1, "namespace", "None")
    }
