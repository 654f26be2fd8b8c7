"""An attack on every constraint of the database, past every action: by `update()` and `bulk_create()`.

Run as a module, it migrates an empty SQLite database, attacks it, and prints what came through as JSON.
"""

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if __name__ == "__main__":
    import django

    from tests.services import environment

    environment.fill()
    os.environ["QM_DATABASE_URL"] = f"sqlite:///{tempfile.mkdtemp()}/db.sqlite3"
    os.environ["QM_BROKER_URL"] = f"filesystem://{tempfile.mkdtemp()}"
    os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
    django.setup()

from django.apps import apps
from django.db import DatabaseError, connection, models, transaction
from django.db.models import F

from accounts.models import (
    AccessLoss,
    ApiToken,
    Contact,
    CostCentre,
    Delegation,
    DirectoryBrake,
    Doubt,
    GroupHeld,
    Idempotency,
    Membership,
    Project,
    RoleHeld,
    SeatFill,
    Team,
    User,
)
from allocations.budgets import balances
from allocations.budgets.money import Amount
from allocations.models import Allocation, Budget, LedgerEntry, UseDay
from approvals.models import Comment, Decision, Request
from audit.models import Anchor, Event, Head, RefusalCount
from checks.allocations import books_agree
from fleet.models import Cluster, Flavor
from onboarding.models import Onboarding
from provisioning.models import Tenancy
from tests import factories
from tests.allocations import attacks as allocations
from tests.approvals import attacks as approvals
from tests.capacity import attacks as capacity
from tests.notebooks import attacks as notebooks
from tests.notices import attacks as notices
from tests.onboarding import attacks as leaving
from tests.provisioning import attacks as drift
from tests.scene import DAY, NOW, Scene, scene
from workloads.models import (
    Attempt,
    ClusterObject,
    Feed,
    FeedRevision,
    GpuUse,
    KeptLog,
    PodUse,
    Run,
    ServiceDay,
    ServiceLevel,
    TemplateVersion,
)

if TYPE_CHECKING:
    from django.db.models.query import QuerySet

PACKAGES = (
    "audit",
    "accounts",
    "notices",
    "fleet",
    "provisioning",
    "manual",
    "notebooks",
    "capacity",
    "allocations",
    "policy",
    "catalogue",
    "approvals",
    "onboarding",
    "workloads",
    "offboarding",
)


@dataclass(frozen=True)
class World:
    """Rows that keep every rule, with a second of each kind to collide with the first."""

    scene: Scene
    approved: Request
    waiting: Request
    other_team: Team
    other_place: Tenancy
    allocation: Allocation
    other_allocation: Allocation


def world() -> World:
    """Two teams on one cluster, with something asked, held, decided and noted."""
    made = scene()
    approved, again = made.ask(2), made.ask(1)
    other_team = factories.team("Speech", by=made.mallory)
    place = factories.tenancy(other_team, made.flavor.cluster)
    ApiToken.objects.create(
        user=made.ada,
        name="one",
        prefix="a",
        digest="a",
        scope="read",
        expires_at=NOW + 9999 * DAY,
    )
    ApiToken.objects.create(
        user=made.ada,
        name="two",
        prefix="b",
        digest="b",
        scope="read",
        expires_at=NOW + 9999 * DAY,
    )
    Idempotency.objects.create(user=made.ada, route="r", key="k", body_hash="h")
    Onboarding.objects.create(
        team=made.team,
        tenancy=made.tenancy,
        request=approved,
        by=made.ada,
        submitted_at=NOW,
    )
    Onboarding.objects.create(
        team=other_team, tenancy=place, request=again, by=made.ada, submitted_at=NOW
    )
    Comment.objects.create(request=approved, by=made.ada, text="It went well.", at=NOW)
    held = [
        Allocation.objects.get(hold=request.hold_id) for request in (approved, again)
    ]
    return World(made, approved, made.ask(8), other_team, place, held[0], held[1])


def after_theirs(world: World) -> int:
    """Have a run of one team begin after one of another."""
    theirs = run(world)
    own = factories.run(world.scene.tenancy, world.scene.ada)
    return only(own).update(after=theirs)


def leave_behind(world: World) -> int:
    """Give a run that another one begins after to another team."""
    first = run(world)
    run(world, after=first)
    return only(first).update(team=world.scene.team)


def run(world: World, **fields: Any) -> Run:
    """A run of the other team."""
    return factories.run(
        world.other_place, world.scene.mallory, **{"created_at": NOW, **fields}
    )


def log_kept_twice(world: World) -> None:
    """What a pod wrote, kept as two logs."""
    of = run(world)
    add(*(KeptLog(run=of, pod="p", lines="", kept_at=NOW) for _ in "ab"))


def log_of_an_attempt_kept_twice(world: World) -> None:
    """What a pod of an attempt wrote, kept as two logs."""
    of = run(world)
    one = Attempt.objects.create(run=of, number=1, started_at=NOW)
    add(*(KeptLog(run=of, attempt=one, pod="p", lines="", kept_at=NOW) for _ in "ab"))


def tried(world: World, *attempts: dict[str, Any]) -> None:
    """A run with these attempts, each its second and over unless it says otherwise."""
    of = run(world)
    usual = {"number": 2, "started_at": NOW, "ended_at": NOW}
    add(*(Attempt(run=of, **usual | one) for one in attempts))


def used(world: World, **fields: Any) -> GpuUse:
    """How busy the GPUs of a run are."""
    return GpuUse.objects.create(
        **{"run": run(world), "share": 0.5, "measured_at": NOW, **fields}
    )


def used_pod(world: World, **fields: Any) -> PodUse:
    """How busy the GPUs of a pod are, not kept yet."""
    usual = {
        "cluster": world.scene.flavor.cluster,
        "namespace": "n",
        "name": "p",
        "share": 0.5,
        "measured_at": NOW,
    }
    return PodUse(**usual | fields)


def service(world: World, **fields: Any) -> ServiceLevel:
    """A service of the other team that promises something, not kept yet."""
    usual = {
        "tenancy": world.other_place,
        "service": "mistral-7b",
        "meter": "istio",
        "tier": "batch",
        "set_at": NOW,
        "set_by": world.scene.mallory,
    }
    return ServiceLevel(**usual | fields)


def service_days(world: World, *days: dict[str, Any]) -> None:
    """A service with these days, each the same and of ten requests unless it says otherwise."""
    level = service(world)
    level.save()
    usual = {"day": NOW.date(), "requests": 10, "failed": 1}
    add(*(ServiceDay(level=level, **usual | one) for one in days))


def template_version(world: World, **fields: Any) -> TemplateVersion:
    """A version of a template of runs, not kept yet."""
    usual = {
        "slug": "x1",
        "number": 1,
        "title": "X",
        "text": "",
        "by": world.scene.ada,
        "at": NOW,
    }
    return TemplateVersion(**usual | fields)


def two_revisions_of_a_scope(world: World) -> None:
    """The same scope of a feed twice."""
    feed = Feed.objects.create(cluster=world.scene.flavor.cluster, kind="Pod")
    add(*(FeedRevision(feed=feed, scope="team-vision") for _ in "ab"))


def only(row: models.Model) -> "QuerySet[Any]":
    """The queryset of one row."""
    return type(row)._default_manager.filter(pk=row.pk)


def add(*rows: models.Model) -> None:
    """Insert past `save()`."""
    type(rows[0])._default_manager.bulk_create(rows)


def change_the_end(w: World, **fields: Any) -> None:
    """End what is held, past the action, and then change what was ended."""
    only(w.allocation).update(ended_at=NOW + DAY, end_reason="expired")
    only(w.allocation).update(**fields)


def day_of_use(w: World, **fields: Any) -> UseDay:
    """One look at two GPUs, both in use."""
    usual = {
        "day": NOW.date(),
        "samples": 1,
        "held_sum": 2,
        "used_sum": 2,
        "last_at": NOW,
    }
    return UseDay(tenancy=w.scene.tenancy, flavor=w.scene.flavor, **(usual | fields))


def doubt(w: World, **fields: Any) -> Doubt:
    """The directory has once said that Ada is blocked."""
    usual = {"user": w.scene.ada, "reason": "blocked", "since": NOW, "asked_at": NOW}
    return Doubt(**(usual | fields))


def directory_brake(**fields: Any) -> DirectoryBrake:
    """The directory was stopped, and nobody has looked yet."""
    usual = {"at": NOW, "cause": "mass", "people": 9, "reason": "Too many."}
    return DirectoryBrake(**(usual | fields))


def stand_in(w: World, **fields: Any) -> Delegation:
    """Marcus for Priya for two days, written by nobody's action."""
    usual = {
        "giver": w.scene.priya,
        "to": w.scene.marcus,
        "starts_at": NOW,
        "until": NOW + 2 * DAY,
    }
    return Delegation(**(usual | fields))


def move_over_another(w: World) -> None:
    """Two stand-ins one after the other, of which the first is made longer."""
    add(stand_in(w), stand_in(w, starts_at=NOW + 3 * DAY, until=NOW + 4 * DAY))
    Delegation.objects.filter(starts_at=NOW).update(until=NOW + 5 * DAY)


def refusals(**fields: Any) -> RefusalCount:
    """Somebody's one refused call of a day."""
    usual = {"day": NOW.date(), "actor_id": "x", "actor_name": "x", "status": 403}
    return RefusalCount(**(usual | fields))


def made_by_the_first(**fields: Any) -> int:
    """The second token, made by the first, which ends at the same moment."""
    first = ApiToken.objects.get(prefix="a")
    usual = {"parent": first, "parent_expires_at": first.expires_at}
    return ApiToken.objects.filter(prefix="b").update(**(usual | fields))


def event(**fields: Any) -> Event:
    """An event past the chain."""
    usual = {
        "seq": 99_999,
        "at": NOW,
        "kind": "refused",
        "actor_kind": "person",
        "actor_name": "x",
    }
    return Event(**(usual | fields))


Attack = Callable[[World], Any]
NAMED: Mapping[str, Attack] = {
    "an_event_has_a_kind": lambda w: add(event(kind="")),
    "events_are_numbered_from_one": lambda w: add(event(seq=0)),
    "there_is_one_head": lambda w: add(Head(id=2)),
    "an_anchor_holds_an_event": lambda w: add(Anchor(day=NOW.date(), seq=0, text="x")),
    "one_count_per_person_day_and_status": lambda w: add(refusals(), refusals()),
    "a_refusal_count_counts_something": lambda w: add(refusals(count=0)),
    "one_account_per_person": lambda w: only(w.scene.mallory).update(
        tid=w.scene.ada.tid, oid=w.scene.ada.oid
    ),
    "a_role_is_held_once": lambda w: add(
        RoleHeld(user=w.scene.ada, role="data_scientist")
    ),
    "a_known_role_is_held": lambda w: RoleHeld.objects.filter(user=w.scene.ada).update(
        role="owner"
    ),
    "only_who_is_away_comes_back": lambda w: only(w.scene.ada).update(away_until=NOW),
    "a_group_is_held_once": lambda w: add(
        *(GroupHeld(user=w.scene.ada, group=factories.group_oid(1)) for _ in "ab")
    ),
    "a_doubt_has_a_known_reason": lambda w: add(doubt(w, reason="none")),
    "a_doubt_was_answered_once": lambda w: add(doubt(w, times=0)),
    "a_doubt_begins_once": lambda w: add(doubt(w, asked_at=NOW - DAY)),
    "access_is_lost_for_a_known_reason": lambda w: add(
        AccessLoss(user=w.scene.ada, reason="none", at=NOW)
    ),
    "access_is_restored_by_a_person": lambda w: add(
        AccessLoss(user=w.scene.ada, reason="blocked", at=NOW, restored_at=NOW)
    ),
    "one_directory_brake_is_on_at_a_time": lambda w: add(
        directory_brake(), directory_brake()
    ),
    "a_directory_brake_has_a_known_cause": lambda w: add(directory_brake(cause="none")),
    "a_directory_brake_is_released_by_a_person": lambda w: add(
        directory_brake(answer="released", answered_at=NOW)
    ),
    "a_seat_is_filled_from_the_directory": lambda w: add(
        SeatFill(seat="x", words="x", people=1)
    ),
    "there_is_one_directory": lambda w: add(Contact(pk=2)),
    "nobody_stands_in_for_themselves": lambda w: add(stand_in(w, to=w.scene.priya)),
    "a_stand_in_ends_after_it_starts": lambda w: add(stand_in(w, until=NOW)),
    "a_stand_in_lasts_90_days_at_most": lambda w: add(
        stand_in(w, until=NOW + 91 * DAY)
    ),
    "who_declined_never_stood_in": lambda w: add(
        stand_in(w, accepted_at=NOW, declined_at=NOW, ended_at=NOW)
    ),
    "a_known_tier": lambda w: only(w.other_team).update(tier="gold"),
    "a_cost_centre_is_listed_once": lambda w: CostCentre.objects.bulk_create(
        CostCentre(code=code, created_at=NOW) for code in ("CC-77", "cc-77")
    ),
    "who_confirmed_a_cost_centre_did_so_at_a_moment": lambda w: (
        CostCentre.objects.bulk_create(
            [CostCentre(code="CC-78", created_at=NOW, confirmed_by=w.scene.priya)]
        )
    ),
    "team_names_are_unique": lambda w: only(w.other_team).update(name="vISION"),
    "a_group_is_of_one_team": lambda w: only(w.other_team).update(
        entra_group=w.scene.team.entra_group
    ),
    "a_team_has_one_account_for_pipelines": lambda w: User.objects.filter(
        pk__in=[w.scene.priya.pk, w.scene.mallory.pk]
    ).update(pipelines_of=w.other_team, signed_in_at=None),
    "nobody_signs_in_as_pipelines": lambda w: User.objects.filter(
        pk=w.scene.priya.pk
    ).update(pipelines_of=w.other_team),
    "a_team_slug_is_a_dns_label": lambda w: only(w.other_team).update(
        slug="Speech_team"
    ),
    "a_team_names_a_project_once": lambda w: add(
        Project(team=w.scene.team, slug="main")
    ),
    "a_project_slug_is_a_dns_label": lambda w: Project.objects.filter(
        team=w.scene.team
    ).update(slug="-x"),
    "a_person_is_in_a_team_once": lambda w: add(
        Membership(team=w.scene.team, user=w.scene.ada)
    ),
    "a_known_part": lambda w: Membership.objects.update(part="owner"),
    "a_known_scope": lambda w: ApiToken.objects.update(scope="admin"),
    "a_token_ends_after_it_starts": lambda w: ApiToken.objects.update(
        expires_at=F("created_at")
    ),
    "a_token_outlives_no_token_that_made_it": lambda w: made_by_the_first(
        expires_at=NOW + 10_000 * DAY
    ),
    "a_token_does_not_make_itself": lambda w: made_by_the_first(parent=F("id")),
    "an_application_acts_for_one_team_at_a_time": lambda w: (
        factories.identity(w.scene.team, w.scene.ada, object_id=w.scene.ada.oid),
        factories.identity(w.other_team, w.scene.mallory, object_id=w.scene.ada.oid),
    ),
    "an_identity_reads_or_runs": lambda w: only(
        factories.identity(w.scene.team, w.scene.ada)
    ).update(scope="write"),
    "an_identity_has_two_ids": lambda w: only(
        factories.identity(w.scene.team, w.scene.ada)
    ).update(client_id=F("object_id")),
    "one_row_per_idempotency_key": lambda w: add(
        Idempotency(user=w.scene.ada, route="r", key="k", body_hash="x")
    ),
    "a_cluster_name_is_a_dns_label": lambda w: Cluster.objects.update(name="a.b"),
    "borrowing_is_at_most_as_much_again": lambda w: Cluster.objects.update(
        borrow_percent=101
    ),
    "repairs_stop_for_a_reason": lambda w: Cluster.objects.update(braked_at=NOW),
    "an_aks_cluster_is_registered_once": lambda w: (
        Cluster.objects.update(azure_id="/subscriptions/one"),
        factories.cluster("again", azure_id="/SUBSCRIPTIONS/ONE"),
    ),
    "an_api_server_is_registered_once": lambda w: (
        only(w.scene.flavor.cluster).update(identity="u-1"),
        only(factories.cluster("second")).update(identity="u-1"),
    ),
    "a_cluster_with_volcano_is_written_to_directly": lambda w: Cluster.objects.update(
        queueing="volcano", delivery="git"
    ),
    "nothing_is_borrowed_with_volcano": lambda w: Cluster.objects.update(
        queueing="volcano", borrow_percent=10
    ),
    "a_maintenance_ends_after_it_starts": lambda w: Cluster.objects.update(
        maintenance_starts_at=NOW, maintenance_ends_at=NOW
    ),
    "a_doubted_list_of_nodes_has_a_reason": lambda w: Cluster.objects.update(
        doubted_looks=1
    ),
    "what_is_written_off_is_out_of_use": lambda w: Cluster.objects.update(
        written_off_at=w.scene.tenancy.created_at
    ),
    "a_cluster_may_be_written_to": lambda w: Cluster.objects.update(
        writes_per_second=0
    ),
    "a_flavor_is_on_a_cluster_once": lambda w: only(
        factories.flavor(w.scene.flavor.cluster)
    ).update(name="a100"),
    "a_flavor_name_is_a_dns_label": lambda w: Flavor.objects.update(name="A100"),
    "allocated_gpus_are_not_negative": lambda w: Flavor.objects.update(
        allocated=F("allocated") - 4
    ),
    "a_gpu_hour_has_a_price": lambda w: Flavor.objects.update(price_per_gpu_hour=0),
    "a_list_price_is_followed_and_of_a_day": lambda w: Flavor.objects.update(
        is_list_price=True
    ),
    "a_node_has_a_gpu": lambda w: Flavor.objects.update(gpus_per_node=0),
    "a_pool_is_not_smaller_than_its_minimum": lambda w: Flavor.objects.update(
        min_nodes=1
    ),
    "a_project_has_an_environment_on_a_cluster_once": lambda w: only(
        w.other_place
    ).update(project=w.scene.tenancy.project_id),
    "a_namespace_has_one_tenancy": lambda w: only(w.other_place).update(
        namespace=w.scene.tenancy.namespace
    ),
    "a_tenancy_observes_what_was_wanted": lambda w: only(w.other_place).update(
        observed_generation=F("generation") + 1
    ),
    "a_tenancy_has_a_known_environment": lambda w: only(w.other_place).update(
        environment="prod"
    ),
    "a_tenancy_has_a_known_isolation": lambda w: only(w.other_place).update(
        isolation="planet"
    ),
    "a_slot_is_held_once": lambda w: Tenancy.objects.update(
        cluster=w.scene.flavor.cluster_id, slot=1
    ),
    "a_priority_limit_is_a_priority": lambda w: only(w.other_place).update(
        priority_limit="system-node-critical"
    ),
    "a_share_is_1_to_100": lambda w: only(w.other_place).update(weight=0),
    "a_request_is_granted_once": lambda w: only(w.other_allocation).update(
        hold=w.allocation.hold_id
    ),
    "a_part_has_ended": lambda w: only(w.allocation).update(part_of=w.other_allocation),
    "an_allocation_is_of_gpus_or_says_what_it_is": lambda w: only(w.allocation).update(
        gpus=0
    ),
    "an_allocation_ends_after_it_starts": lambda w: only(w.allocation).update(
        until=F("starts_at"), remind_at=None
    ),
    "an_end_has_a_reason": lambda w: only(w.allocation).update(ended_at=NOW),
    "a_team_has_one_budget_a_month": lambda w: add(
        Budget(team=w.scene.team, month=NOW.date().replace(day=1), limit_usd=1)
    ),
    "a_budget_is_never_overspent": lambda w: Budget.objects.update(
        held_usd=F("limit_usd") + 1
    ),
    "a_budget_holds_no_less_than_nothing": lambda w: Budget.objects.update(held_usd=-1),
    "gpu_hours_are_never_overspent": lambda w: Budget.objects.update(
        gpu_hours_limit=F("held_gpu_hours") - 1
    ),
    "no_gpu_hours_below_nothing": lambda w: Budget.objects.update(held_gpu_hours=-1),
    "a_soft_stage_is_1_to_100_percent": lambda w: Budget.objects.update(
        soft_percent=101
    ),
    "a_day_of_use_is_counted_once": lambda w: add(day_of_use(w), day_of_use(w)),
    "no_more_is_used_than_is_held": lambda w: add(day_of_use(w, used_sum=3)),
    "a_sample_is_of_what_is_held": lambda w: add(day_of_use(w, samples=3)),
    "one_template_version_per_number": lambda w: add(
        *(template_version(w) for _ in "ab")
    ),
    "a_template_version_counts_from_one": lambda w: add(template_version(w, number=0)),
    "one_feed_per_kind": lambda w: add(
        *(Feed(cluster=w.scene.flavor.cluster, kind="Pod") for _ in "ab")
    ),
    "one_revision_per_scope": two_revisions_of_a_scope,
    "a_held_feed_names_its_watcher": lambda w: add(
        Feed(cluster=w.scene.flavor.cluster, kind="Pod", lease_until=NOW)
    ),
    "one_copy_per_object": lambda w: add(
        *(
            ClusterObject(cluster=w.scene.flavor.cluster, kind="Pod", name="a", body={})
            for _ in "ab"
        )
    ),
    "a_log_is_kept_once": log_kept_twice,
    "a_log_of_an_attempt_is_kept_once": log_of_an_attempt_kept_twice,
    "an_attempt_is_counted_once": lambda w: tried(w, {}, {}),
    "a_run_has_one_attempt_at_a_time": lambda w: tried(
        w, {"ended_at": None}, {"number": 3, "ended_at": None}
    ),
    "attempts_are_counted_from_one": lambda w: tried(w, {"number": 0}),
    "an_attempt_ends_after_it_starts": lambda w: tried(w, {"ended_at": NOW - DAY}),
    "an_attempt_that_runs_has_not_ended_for_a_reason": lambda w: tried(
        w, {"ended_at": None, "why": "It made room."}
    ),
    "a_parked_run_is_worked_on_by_nobody": lambda w: only(run(w)).update(
        parked_at=NOW, lease_until=NOW
    ),
    "a_run_has_a_name_of_its_own": lambda w: [run(w, name="one") for _ in "ab"],
    "a_run_is_in_a_known_state": lambda w: run(w, state="asleep"),
    "a_run_is_over_once_it_ended": lambda w: run(w, state="failed"),
    "a_time_limit_is_changed_by_somebody": lambda w: only(run(w)).update(
        limit_changed_at=NOW
    ),
    "a_run_is_stopped_by_somebody": lambda w: only(run(w)).update(stop_asked_at=NOW),
    "a_stopped_run_was_asked_to_stop": lambda w: run(w, state="stopped", ended_at=NOW),
    "gpu_use_is_a_share": lambda w: used(w, share=1.5),
    "gpu_use_is_of_some_of_the_pods": lambda w: used(w, pods=1, pods_measured=2),
    "gpus_are_idle_since_before_they_were_measured": lambda w: used(
        w, idle_since=NOW + DAY
    ),
    "gpus_are_busy_only_while_they_are_measured": lambda w: used(
        w, busy_seconds=61, measured_seconds=60
    ),
    "a_gpu_uses_no_less_than_no_memory": lambda w: used(w, peak_mib=-1),
    "one_use_per_pod": lambda w: add(used_pod(w), used_pod(w)),
    "the_use_of_a_pod_is_a_share": lambda w: add(used_pod(w, share=-0.1)),
    "a_pod_is_idle_since_before_it_was_measured": lambda w: add(
        used_pod(w, idle_since=NOW + DAY)
    ),
    "a_service_has_one_level": lambda w: add(service(w), service(w)),
    "a_service_is_counted_by_a_known_meter": lambda w: add(service(w, meter="guess")),
    "a_service_is_of_a_known_tier": lambda w: add(service(w, tier="gold")),
    "a_service_has_one_row_a_day": lambda w: service_days(w, {}, {}),
    "no_more_requests_fail_than_there_are": lambda w: service_days(w, {"failed": 11}),
    "a_run_begins_after_an_earlier_one": lambda w: only(run(w)).update(after=F("pk")),
    "a_run_that_waits_for_another_is_not_sent": lambda w: run(
        w, state="blocked", after=run(w), sent_at=NOW
    ),
    "a_cause_is_that_of_a_failed_run": lambda w: only(run(w)).update(cause="disk"),
    "a_run_never_earns_money": lambda w: run(w, usd_per_hour="-1"),
    "a_run_that_runs_has_started": lambda w: only(run(w)).update(running_since=NOW),
    "a_run_starts_after_it_was_submitted": lambda w: only(run(w)).update(
        started_at=NOW - DAY
    ),
    **allocations.NAMED,
    **notices.NAMED,
    **notebooks.NAMED,
    **capacity.NAMED,
    **drift.NAMED,
    **leaving.NAMED,
    **approvals.NAMED,
}
UNIQUE: Mapping[str, Attack] = {
    "accounts.User.oid": lambda w: only(w.scene.mallory).update(
        oid=w.scene.ada.oid, tid=factories.oid(5)
    ),
    "accounts.Team.slug": lambda w: only(w.other_team).update(slug=w.scene.team.slug),
    "accounts.ApiToken.prefix": lambda w: ApiToken.objects.filter(prefix="b").update(
        prefix="a"
    ),
    "accounts.ApiToken.digest": lambda w: ApiToken.objects.filter(prefix="b").update(
        digest="a"
    ),
    "accounts.SeatFill.seat": lambda w: add(
        *(SeatFill(seat="x", words="x") for _ in "ab")
    ),
    "fleet.Cluster.name": lambda w: only(factories.cluster()).update(
        name=w.scene.flavor.cluster.name
    ),
    "onboarding.Onboarding.team": lambda w: Onboarding.objects.filter(
        team=w.other_team
    ).update(team=w.scene.team),
    "onboarding.Onboarding.tenancy": lambda w: Onboarding.objects.filter(
        team=w.other_team
    ).update(tenancy=w.scene.tenancy),
    "onboarding.Onboarding.request": lambda w: Onboarding.objects.filter(
        team=w.other_team
    ).update(request=w.approved),
    **notices.UNIQUE,
    **notebooks.UNIQUE,
    **capacity.UNIQUE,
    **approvals.UNIQUE,
}
# Further ways around a rule that has more than one side.
ALSO: Mapping[str, Attack] = {
    **notices.ALSO,
    **notebooks.ALSO,
    **capacity.ALSO,
    **drift.ALSO,
    **leaving.ALSO,
    **approvals.ALSO,
    "a run after one of another team": lambda w: factories.run(
        w.scene.tenancy, w.scene.ada, after=run(w)
    ),
    "a run that comes to be after one of another team": after_theirs,
    "a run that leaves the team of the one before it": lambda w: only(
        run(w, after=run(w))
    ).update(team=w.scene.team),
    "a run that leaves the team of the one behind it": leave_behind,
    "two stand-ins at one time": lambda w: add(
        stand_in(w), stand_in(w, starts_at=NOW + DAY)
    ),
    "a stand-in moved over another": move_over_another,
    "a token made by one that has no end": lambda w: made_by_the_first(
        parent_expires_at=None
    ),
    "a token that ends with one that made none": lambda w: made_by_the_first(
        parent=None
    ),
    "an end taken back": lambda w: change_the_end(w, ended_at=None, end_reason=""),
    "an end moved": lambda w: change_the_end(w, ended_at=NOW + 2 * DAY),
    "an end for another reason": lambda w: change_the_end(w, end_reason="renewed"),
    "an entry of the ledger changed": lambda w: LedgerEntry.objects.update(usd=0),
    "an entry of the ledger deleted": lambda w: LedgerEntry.objects.all()._raw_delete(
        "default"
    ),
    "a decision changed": lambda w: Decision.objects.update(content_version=9),
    "a reason without an end": lambda w: only(w.allocation).update(
        end_reason="expired"
    ),
    "an event changed": lambda w: Event.objects.filter(seq=1).update(
        actor_name="somebody else"
    ),
    "all events changed": lambda w: Event.objects.update(details={}),
    "an event deleted": lambda w: Event.objects.filter(seq=1).delete(),
    "an event deleted past the model": lambda w: Event.objects.all()._raw_delete(
        "default"
    ),
}
ATTACKS: Mapping[str, Attack] = {**NAMED, **UNIQUE, **ALSO}


def named_constraints() -> set[str]:
    """The constraints that models declare."""
    return {
        constraint.name
        for model in product_models()
        for constraint in model._meta.constraints
    }


def unique_fields() -> set[str]:
    """The fields that are unique by themselves, but for keys."""
    return {
        f"{model._meta.label}.{field.name}"
        for model in product_models()
        for field in model._meta.fields
        if field.unique and not field.primary_key
    }


def product_models() -> Iterator[type[models.Model]]:
    """Every model of the product."""
    return (model for model in apps.get_models() if model._meta.app_label in PACKAGES)


def refusal(name: str, w: World) -> str:
    """What the database says to an attack; empty when it lets it through."""
    try:
        with transaction.atomic():
            ATTACKS[name](w)
            # Some rules are only held at the end of a transaction.
            connection.check_constraints()
    except DatabaseError as error:
        return str(error) or type(error).__name__
    return ""


def held_in_turn(world: World) -> list[str]:
    """What a budget of 0.80 USD holds after 0.70 and 0.10 were set aside, and each was let go, if its ledger agrees.

    In binary fractions neither their sum nor what is left of it is exact.
    """
    month, told = date(2027, 3, 1), []
    team = world.other_team
    balances.budgets_of(team, [month])
    Budget.objects.filter(team=team, month=month).update(limit_usd=Decimal("0.80"))

    def tell() -> None:
        wrong = [one.words for one in books_agree(NOW) if team.slug in one.subject]
        wrong += [
            str(one)
            for one in balances.replay(team)
            if one.month == month and not one.agrees
        ]
        told.append(
            ", ".join(wrong) or str(Budget.objects.get(team=team, month=month).held_usd)
        )

    holds = [factories.hold(team), factories.hold(team)]
    for hold, usd in zip(holds, ("0.70", "0.10"), strict=True):
        balances.reserve(hold, parts={month: Amount(Decimal(usd))}, now=NOW)
        tell()
    for hold in holds:
        balances.settle(hold, parts={}, now=NOW, why="over")
        tell()
    return told


def main() -> None:
    """Attack a fresh SQLite database and print what it answered to each."""
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    with transaction.atomic():
        made = world()
        answers = {name: refusal(name, made) for name in ATTACKS}
        held = held_in_turn(made)
        transaction.set_rollback(True)
    json.dump(
        {"vendor": connection.vendor, "answers": answers, "held": held}, sys.stdout
    )


if __name__ == "__main__":
    main()
