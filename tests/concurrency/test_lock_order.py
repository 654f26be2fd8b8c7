"""Locks are taken in one order, so that no two actions can wait for each other.

The order: request, budgets, person, cluster, flavor, subscription, tenancy, notebooks, hub, audit chain. Each test
holds one row, lets an action run into it, and sees that the action holds nothing that comes later.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date, timedelta

import psycopg
import pytest
from django.db import connection, transaction
from django.utils import timezone

from accounts.directory.client import graph
from accounts.models import User
from accounts.roles import Role
from accounts.tokens.actions import create_team_token
from allocations.bookings import actions as bookings
from allocations.ends import actions as ends
from allocations.models import Allocation, Budget, Leftover
from allocations.schedule import Provisioner
from allocations.use import over_quota
from allocations.use.running import Running
from approvals.decisions import actions as decisions
from audit.actors import PORTAL
from audit.events import Kind
from audit.models import Event
from fleet.models import Flavor
from notebooks.hubs.actions import disconnect
from notebooks.models import Hub, NotebookServer
from notebooks.servers import actions as notebooks
from offboarding.actions import finish
from offboarding.models import Departure
from onboarding.actions import Enrolment, Start, onboard
from provisioning.controller import acquire
from provisioning.models import Tenancy
from provisioning.stages import Stage
from tests import factories
from tests.capacity.shared import grant, two_clusters
from tests.insights.fleet import SUBSCRIPTION, connect
from tests.sandbox.entra.running import Running as Directory
from tests.scene import NOW
from tests.services.process import wait_until

CLIMATE = "00000000-0000-4000-9000-000000000009"
BLOCKED = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


class Place:
    """A team that holds two GPUs and has one request waiting."""

    def __init__(self) -> None:
        self.team = factories.team()
        self.flavor: Flavor = factories.flavor()
        self.tenancy: Tenancy = factories.tenancy(self.team, self.flavor.cluster)
        self.member: User = factories.person(teams=[self.team])
        self.lead: User = factories.person("", Role.PLATFORM_LEAD)
        self.allocation: Allocation = factories.allocation(
            self.member, self.tenancy, self.flavor, gpus=2
        )
        self.waiting = factories.request(self.member, self.tenancy, self.flavor, gpus=4)

    def submit(self) -> None:
        """Ask for one more, which the policy grants."""
        factories.request(self.member, self.tenancy, self.flavor)

    def approve(self) -> None:
        """Grant what waits."""
        version = self.waiting.version
        decisions.approve(
            self.waiting.pk, by=self.lead, expected_version=version, now=timezone.now()
        )

    def give_back_all(self) -> None:
        """Give both back."""
        ends.give_back(
            self.allocation.pk, gpus=None, by=self.member, now=timezone.now()
        )

    def give_back_part(self) -> None:
        """Give one back, which writes a row for the other."""
        ends.give_back(self.allocation.pk, gpus=1, by=self.member, now=timezone.now())

    def expire(self) -> None:
        """End what is held."""
        ends.expire(
            self.allocation.pk, now=self.allocation.until + timedelta(seconds=1)
        )


ACTIONS = [
    Place.submit,
    Place.approve,
    Place.give_back_all,
    Place.give_back_part,
    Place.expire,
]


@contextmanager
def raw() -> Iterator[psycopg.Connection]:
    """A connection of the test's own; what it locks is let go at the end."""
    base = connection.settings_dict
    with psycopg.connect(
        host=base["HOST"], port=base["PORT"], user=base["USER"], dbname=base["NAME"]
    ) as opened:
        yield opened
        opened.rollback()


def run(action: Callable[[], None]) -> None:
    """The action in a thread, with a connection of the thread's own."""
    try:
        action()
    finally:
        connection.close()


@contextmanager
def run_into(action: Callable[[], None], lock: str) -> Iterator[psycopg.Connection]:
    """Let an action run into a locked row; yields a connection to look around with while it waits."""
    with ThreadPoolExecutor(1) as threads:
        with raw() as holder, raw() as looking:
            holder.execute(lock.encode())
            looking.autocommit = True
            running: Future[None] = threads.submit(run, action)

            def is_blocked() -> bool:
                assert not running.done(), running.result()
                return looking.execute(BLOCKED).fetchone() == (1,)

            wait_until(is_blocked, what="the action to run into the lock", seconds=7)
            yield looking
        running.result(timeout=10)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("action", ACTIONS)
def test_the_flavor_is_locked_before_the_tenancy(
    action: Callable[[Place], None],
) -> None:
    place = Place()
    lock = f"SELECT 1 FROM fleet_flavor WHERE id = {place.flavor.pk} FOR UPDATE"
    with run_into(lambda: action(place), lock) as looking:
        free = (
            "SELECT id FROM provisioning_tenancy WHERE id = %s FOR NO KEY UPDATE NOWAIT"
        )
        assert looking.execute(free, [place.tenancy.pk]).fetchone() == (
            place.tenancy.pk,
        )


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("action", ACTIONS)
def test_every_month_of_the_team_is_locked_before_the_flavor(
    action: Callable[[Place], None],
) -> None:
    # Money set aside in an earlier month is let go in the same transaction that takes some in a later one.
    place = Place()
    budget = Budget.objects.create(
        team=place.team, month=date(2026, 1, 1), limit_usd=1000
    )
    lock = f"SELECT 1 FROM allocations_budget WHERE id = {budget.pk} FOR UPDATE"
    with run_into(lambda: action(place), lock) as looking:
        free = "SELECT id FROM fleet_flavor WHERE id = %s FOR NO KEY UPDATE NOWAIT"
        assert looking.execute(free, [place.flavor.pk]).fetchone() == (place.flavor.pk,)


@pytest.mark.django_db(transaction=True)
def test_who_asks_is_locked_after_the_budgets_and_before_the_flavor() -> None:
    place = Place()
    lock = f"SELECT 1 FROM accounts_user WHERE id = {place.member.pk} FOR NO KEY UPDATE"
    with run_into(place.submit, lock) as looking:
        free = "SELECT id FROM fleet_flavor WHERE id = %s FOR NO KEY UPDATE NOWAIT"
        assert looking.execute(free, [place.flavor.pk]).fetchone() == (place.flavor.pk,)
        taken = "SELECT id FROM allocations_budget WHERE team_id = %s FOR NO KEY UPDATE NOWAIT"
        with pytest.raises(psycopg.errors.LockNotAvailable):
            looking.execute(taken, [place.team.pk])


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("action", ACTIONS)
def test_the_tenancy_is_locked_before_the_audit_chain(
    action: Callable[[Place], None],
) -> None:
    place = Place()
    lock = (
        f"SELECT 1 FROM provisioning_tenancy WHERE id = {place.tenancy.pk} FOR UPDATE"
    )
    with run_into(lambda: action(place), lock) as looking:
        assert looking.execute(
            "SELECT id FROM audit_head FOR UPDATE NOWAIT"
        ).fetchone() == (1,)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("action", [Place.give_back_all, Place.expire])
def test_a_notebook_is_locked_after_its_tenancy_and_before_the_audit_chain(
    action: Callable[[Place], None],
) -> None:
    place = Place()
    server = factories.notebook(place.tenancy, place.member, flavor=place.flavor)
    Allocation.objects.filter(pk=place.allocation.pk).update(
        notebook=server, provisioner=Provisioner.JUPYTERHUB
    )
    lock = f"SELECT 1 FROM notebooks_notebookserver WHERE id = {server.pk} FOR NO KEY UPDATE"
    with run_into(lambda: action(place), lock) as looking:
        assert looking.execute(
            "SELECT id FROM audit_head FOR UPDATE NOWAIT"
        ).fetchone() == (1,)
        taken = (
            "SELECT id FROM provisioning_tenancy WHERE id = %s FOR NO KEY UPDATE NOWAIT"
        )
        with pytest.raises(psycopg.errors.LockNotAvailable):
            looking.execute(taken, [place.tenancy.pk])


@pytest.mark.django_db(transaction=True)
def test_what_was_granted_for_a_notebook_forgets_it_before_its_removal_is_recorded() -> (
    None
):
    # A renewal ends what was granted before, and records it at the end.
    place = Place()
    server = factories.notebook(place.tenancy, place.member, flavor=place.flavor)
    stopped = {
        "state": "stopped",
        "stop_reason": "limit",
        "stopped_at": timezone.now(),
    }
    NotebookServer.objects.filter(pk=server.pk).update(**stopped)
    Allocation.objects.filter(pk=place.allocation.pk).update(notebook=server)
    lock = f"SELECT 1 FROM allocations_allocation WHERE id = {place.allocation.pk} FOR NO KEY UPDATE"

    def action() -> None:
        notebooks.remove(server.pk, by=place.member)

    with run_into(action, lock) as looking:
        assert looking.execute(
            "SELECT id FROM audit_head FOR UPDATE NOWAIT"
        ).fetchone() == (1,)
    assert not NotebookServer.objects.exists()
    removed = Event.objects.get(kind=Kind.NOTEBOOK_REMOVED)
    assert removed.subject_id == str(server.pk)


@pytest.mark.django_db(transaction=True)
def test_a_hub_is_locked_before_the_audit_chain() -> None:
    # Launches lock it, too, and record what they did at the end.
    place = Place()
    factories.notebooks_on(place.flavor.cluster)
    hub = Hub.objects.get()
    lock = f"SELECT 1 FROM notebooks_hub WHERE cluster_id = {hub.pk} FOR NO KEY UPDATE"

    def action() -> None:
        disconnect(hub, by=place.lead, now=timezone.now())

    with run_into(action, lock) as looking:
        assert looking.execute(
            "SELECT id FROM audit_head FOR UPDATE NOWAIT"
        ).fetchone() == (1,)
    assert not Hub.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_notebooks_over_quota_are_locked_before_anything_is_recorded() -> None:
    place = Place()
    first, second = (
        factories.notebook(place.tenancy, place.member, flavor=place.flavor)
        for _ in "ab"
    )
    place.give_back_all()
    Leftover.objects.update(stop_at=timezone.now())
    work = [
        Running(
            uid=str(each.pk),
            name=each.name,
            job=f"Pod jupyter-x--{each.name}",
            priority=0,
            since="",
            gpus={place.flavor.name: 1},
        )
        for each in (first, second)
    ]

    def action() -> None:
        over_quota.settle(
            place.tenancy.pk, over_quota.Sight(work, {}), now=timezone.now()
        )

    lock = f"SELECT 1 FROM notebooks_notebookserver WHERE id = {second.pk} FOR NO KEY UPDATE"
    with run_into(action, lock) as looking:
        assert looking.execute(
            "SELECT id FROM audit_head FOR UPDATE NOWAIT"
        ).fetchone() == (1,)
    for each in (first, second):
        each.refresh_from_db()
        assert each.stop_reason == "end"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_booked", [False, True])
def test_the_quotas_that_are_taken_from_are_locked_between_the_flavor_and_the_tenancy(
    is_booked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(monkeypatch)
    here, second, there = two_clusters(machines=2)
    starts = NOW + timedelta(days=1)
    booked = grant(here, there, second, 4, starts=starts)

    def action() -> None:
        if is_booked:
            bookings.begin(booked.pk, now=starts)
        else:
            grant(here, there, second, 4)

    lock = f"SELECT 1 FROM capacity_subscription WHERE id = '{SUBSCRIPTION}' FOR NO KEY UPDATE"
    with run_into(action, lock) as looking:
        free = (
            "SELECT id FROM provisioning_tenancy WHERE id = %s FOR NO KEY UPDATE NOWAIT"
        )
        assert looking.execute(free, [there.pk]).fetchone() == (there.pk,)


@pytest.mark.django_db(transaction=True)
def test_onboarding_locks_the_cluster_before_the_audit_chain(
    directory: Directory,
) -> None:
    # Changing a cluster locks its row, then the chain; a new tenancy locks the row that it refers to.
    cluster, lead = factories.cluster(), factories.person("", Role.PLATFORM_LEAD)
    enrolment = Enrolment(
        name="Climate",
        entra_group=CLIMATE,
        cost_centre="CC-1",
        project="models",
        environment="dev",
        cluster=cluster,
    )
    lock = f"SELECT 1 FROM fleet_cluster WHERE id = {cluster.pk} FOR UPDATE"
    with run_into(lambda: enrol(enrolment, lead), lock) as looking:
        # The chain's head may not be there yet: a table lock also meets the writer of its first row.
        looking.autocommit = False
        looking.execute("LOCK TABLE audit_head IN SHARE ROW EXCLUSIVE MODE NOWAIT")
        looking.rollback()


@pytest.mark.django_db(transaction=True)
def test_onboarding_locks_who_asks_before_the_cluster_and_the_audit_chain(
    directory: Directory,
) -> None:
    # The first ask of the new team counts in the person's window, as whatever they ask for elsewhere.
    cluster, lead = factories.cluster(), factories.person("", Role.PLATFORM_LEAD)
    enrolment = Enrolment(
        name="Climate",
        entra_group=CLIMATE,
        cost_centre="CC-1",
        project="models",
        environment="dev",
        cluster=cluster,
    )
    lock = f"SELECT 1 FROM accounts_user WHERE id = {lead.pk} FOR NO KEY UPDATE"
    with run_into(lambda: enrol(enrolment, lead), lock) as looking:
        free = "SELECT id FROM fleet_cluster WHERE id = %s FOR NO KEY UPDATE NOWAIT"
        assert looking.execute(free, [cluster.pk]).fetchone() == (cluster.pk,)


def enrol(enrolment: Enrolment, by: User) -> None:
    """Bring a team on board."""
    onboard(enrolment, by=by, graph=graph(), now=timezone.now())


@pytest.mark.django_db(transaction=True)
def test_the_end_of_a_pass_holds_up_no_row_that_refers_to_its_tenancy() -> None:
    place = Place()
    held = acquire(place.tenancy.pk, now=timezone.now())
    assert held is not None
    with transaction.atomic(), raw() as referring:
        assert held.release()
        # What a foreign key's check takes at commit, when the audit chain is held already.
        refers = (
            "SELECT id FROM provisioning_tenancy WHERE id = %s FOR KEY SHARE NOWAIT"
        )
        assert referring.execute(refers, [place.tenancy.pk]).fetchone() == (
            place.tenancy.pk,
        )


@pytest.mark.django_db(transaction=True)
def test_onboarding_locks_the_quotas_of_azure_before_the_audit_chain(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first ask takes from them, and whoever else takes from them records it at the end.
    connect(monkeypatch)
    _, flavor, _ = two_clusters(machines=2)
    lead = factories.person("", Role.PLATFORM_LEAD)
    enrolment = Enrolment(
        name="Climate",
        entra_group=CLIMATE,
        cost_centre="CC-1",
        project="models",
        environment="dev",
        cluster=flavor.cluster,
        start=Start(
            flavor=flavor,
            gpus=1,
            until=timezone.now() + timedelta(days=1),
            purpose="training",
            reason="Retrain the detector before the review.",
        ),
    )
    lock = f"SELECT 1 FROM capacity_subscription WHERE id = '{SUBSCRIPTION}' FOR NO KEY UPDATE"
    with run_into(lambda: enrol(enrolment, lead), lock) as looking:
        looking.autocommit = False
        looking.execute("LOCK TABLE audit_head IN SHARE ROW EXCLUSIVE MODE NOWAIT")
        looking.rollback()


def gone(tenancy: Tenancy) -> None:
    """Nothing is left of it on its cluster."""
    now = timezone.now()
    for stage in (Stage.LEAVING, Stage.RETAINED, Stage.REMOVING, Stage.GONE):
        is_off = stage != Stage.LEAVING
        Tenancy.objects.filter(pk=tenancy.pk).update(
            stage=stage,
            is_protected=False,
            leaves_at=now,
            retained_until=now if is_off else None,
            gone_at=now if stage == Stage.GONE else None,
            stop="HoldAndDrain" if is_off else "None",
        )


@pytest.mark.django_db(transaction=True)
def test_the_identities_of_a_team_that_has_left_are_locked_before_the_audit_chain() -> (
    None
):
    # Its tokens end with them, and who removes an identity records that at the end.
    place, now = Place(), timezone.now()
    place.team.memberships.filter(user=place.member).update(part="lead")
    create_team_token(
        team=place.team, name="nightly", scope="run", days=9, by=place.member, now=now
    )
    identity = factories.identity(place.team, place.lead)
    departure = Departure.objects.create(
        team=place.team,
        is_whole=True,
        leaves_at=now,
        hold=False,
        needs_second=False,
        retention_days=30,
        reason="It is over.",
        asked_by=place.lead,
        asked_at=now,
        confirmed_by=place.lead,
        confirmed_at=now,
    )
    gone(place.tenancy)
    lock = f"SELECT 1 FROM accounts_identity WHERE id = {identity.pk} FOR NO KEY UPDATE"

    def action() -> None:
        assert finish(departure.pk, actor=PORTAL, now=now)

    with run_into(action, lock) as looking:
        assert looking.execute(
            "SELECT id FROM audit_head FOR UPDATE NOWAIT"
        ).fetchone() == (1,)
    kinds = ("token.revoked", "identity.removed", Kind.DEPARTURE_DONE)
    ended = Event.objects.filter(kind__in=kinds).order_by("seq")
    assert tuple(ended.values_list("kind", flat=True)) == kinds
