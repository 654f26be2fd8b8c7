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

from tests.faults.databases import moved
from tests.services.plugin import lent
from tests.services.postgres import Postgres
from tests.services.process import wait_until

# The newest migration of each package in the release before the one that is built. Its processes may still run while
# newer migrations are made, and after: a deployment replaces them one by one. No release is out yet: it is the first.
BEFORE = [
    ("accounts", "0001_initial"),
    ("allocations", "0001_initial"),
    ("approvals", "0001_initial"),
    ("audit", "0001_initial"),
    ("catalogue", "0001_initial"),
    ("fleet", "0001_initial"),
    ("notices", "0001_initial"),
    ("offboarding", "0001_initial"),
    ("onboarding", "0001_initial"),
    ("policy", "0001_initial"),
    ("provisioning", "0001_initial"),
]
FRAMEWORK = ["contenttypes", "auth", "sessions"]
# What no default can give, because it depends on another column, a trigger does: (model, field).
GIVEN_BY_A_TRIGGER: set[tuple[str, str]] = set()
BREAKING = (
    operations.RemoveField,
    operations.RenameField,
    operations.DeleteModel,
    operations.RenameModel,
)
NAME = "old"


def newer() -> Iterator[Migration]:
    """The migrations that the release before does not know."""
    loader = MigrationLoader(None)
    known = {key for leaf in BEFORE for key in loader.graph.forwards_plan(leaf)}
    for key, migration in sorted(loader.disk_migrations.items()):
        if key not in known and key[0] in dict(BEFORE):
            yield migration


def faults(migration: Migration) -> list[str]:
    """What of a migration would break the release before, which neither writes nor misses a column that is new."""
    old = MigrationLoader(None).project_state(BEFORE).models
    found = []
    for op in migration.operations:
        if isinstance(op, BREAKING):
            found.append(
                f"{migration}: {type(op).__name__} takes away what the release before uses"
            )
        if not isinstance(op, operations.AddField | operations.AlterField):
            continue
        table = old.get((migration.app_label, op.model_name_lower))
        if table is None:
            continue
        before = table.fields.get(op.name)
        is_given = op.field.null or op.field.db_default is not models.NOT_PROVIDED
        if (
            before is None
            and not is_given
            and (op.model_name_lower, op.name) not in GIVEN_BY_A_TRIGGER
        ):
            found.append(
                f"{migration}: the release before does not write {op.model_name_lower}.{op.name}"
            )
        if before is not None and before.null and not op.field.null:
            found.append(
                f"{migration}: the release before may leave {op.model_name_lower}.{op.name} empty"
            )
    return found


def step(*steps: operations.base.Operation) -> Migration:
    """A migration of the allocations that a later release could bring."""
    planted: type[Migration] = type(
        "Planted", (Migration,), {"operations": list(steps)}
    )
    return planted("0002_planted", "allocations")


def test_the_release_before_can_go_on_beside_every_newer_migration() -> None:
    assert [fault for migration in newer() for fault in faults(migration)] == []


@pytest.mark.parametrize(
    ("planted", "fault"),
    [
        (operations.RemoveField("allocation", "title"), "takes away"),
        (operations.RenameField("allocation", "title", "what"), "takes away"),
        (
            operations.AddField(
                "allocation", "colour", models.TextField(default="red")
            ),
            "does not write",
        ),
        (
            operations.AlterField("allocation", "ended_at", models.DateTimeField()),
            "may leave",
        ),
    ],
)
def test_what_the_release_before_could_not_live_with_is_noticed(
    planted: Any, fault: str
) -> None:
    (found,) = faults(step(planted))
    assert fault in found


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
            hold=self.model("allocations", "Hold").create(team=tenancy.team),
            gpus=1,
            price_per_gpu_hour=Decimal(3),
            usd_per_hour=Decimal(3),
            starts_at=now,
            charged_from=now,
            until=now + timedelta(days=1),
            kept_until=now + timedelta(days=1),
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
            requeue_at=now,
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
def test_the_release_before_works_while_and_after_the_tables_change_under_it(
    old_tables: Postgres,
) -> None:
    """Where nothing newer is there yet, a column with a default and a looser one stand for it."""
    before = MigrationLoader(connection).project_state(BEFORE)
    planted = step(
        operations.AddField(
            "allocation", "colour", models.TextField(default="", db_default="red")
        ),
        operations.AlterField(
            "allocation",
            "title",
            models.CharField(max_length=400, blank=True, null=True),
        ),
        operations.AddIndex(
            "allocation", models.Index(fields=["colour"], name="allocations_by_colour")
        ),
    )
    old = OldRelease(before.clone().apps)
    threads = [threading.Thread(target=old.run) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: old.rounds > 5, what="the release before to work")
        call_command("migrate", verbosity=0)
        with connection.schema_editor() as editor:
            planted.apply(before, editor)
        after = timezone.now()
        then = old.rounds
        wait_until(lambda: old.rounds > then + 10, what="the release before to go on")
    finally:
        old.over.set()
        for thread in threads:
            thread.join()
    assert old.errors == []
    assert old.longest < 3
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT colour FROM allocations_allocation WHERE starts_at > %s",
            [after],
        )
        assert cursor.fetchall() == [("red",)]
