"""The rows that the benchmarks stand on, in bulk: the only place that knows how the portal's tables look."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model

from accounts.models import Membership, Project, RoleHeld, Team, User
from accounts.roles import Role
from allocations.models import Allocation, Hold
from approvals.decisions.routing import start
from approvals.judging.inputs import (
    answer_of,
    inputs_of,
    policy_in_force,
    remedies_shown,
)
from approvals.models import Decision, Evaluation, Request, Revision, Step
from approvals.states import State
from fleet.models import Cluster, Flavor
from policy.document import LEADERSHIP, LEADS
from policy.evaluation import Ask, Standing, evaluate
from policy.remedies import remedies_of
from provisioning.models import Tenancy

Row = TypeVar("Row", bound=Model)
PEOPLE, TEAMS, CLUSTERS = 2_000, 1_000, 4
BATCH = 2_000
TENANT = UUID("11111111-1111-4111-8111-111111111111")
PRICE = Decimal("3.67")
REASON = (
    "Retrain the detector on the November data before the review; run {} of the series."
)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True)
class Crowd:
    """Who and where: people in teams, teams on clusters, and the platform lead who looks at it all."""

    lead: User
    people: Sequence[User]
    tenancies: Sequence[Tenancy]
    flavors: Sequence[Flavor]


def crowd(now: datetime) -> Crowd:
    """2,000 people in 1,000 teams of two, each team with a place on one of four clusters."""
    people = User.objects.bulk_create(_person(number) for number in range(PEOPLE))
    lead = User.objects.create(
        tid=TENANT, oid=UUID(int=PEOPLE + 1), name="Priya Raman", username="priya"
    )
    roles = [RoleHeld(user=user, role=Role.DATA_SCIENTIST) for user in people]
    RoleHeld.objects.bulk_create([*roles, RoleHeld(user=lead, role=Role.PLATFORM_LEAD)])
    teams = Team.objects.bulk_create(_team(number, lead) for number in range(TEAMS))
    projects = Project.objects.bulk_create(
        Project(team=team, slug="main") for team in teams
    )
    Membership.objects.bulk_create(
        Membership(team=teams[number % TEAMS], user=user, part="member")
        for number, user in enumerate(people)
    )
    clusters = Cluster.objects.bulk_create(
        _cluster(number, now) for number in range(CLUSTERS)
    )
    flavors = Flavor.objects.bulk_create(_flavor(cluster, now) for cluster in clusters)
    tenancies = Tenancy.objects.bulk_create(
        Tenancy(
            team=team,
            cluster=clusters[number % CLUSTERS],
            project=projects[number],
            environment="dev",
            namespace=f"{team.slug}-main",
            requeue_at=now + DAY,
        )
        for number, team in enumerate(teams)
    )
    return Crowd(lead, people, tenancies, flavors)


def requests(among: Crowd, *, count: int, waiting: int, now: datetime) -> None:
    """So many requests of the last 400 days, the newest `waiting` of them undecided, the others with all they left."""
    dice = random.Random(1)  # the same rows in every run
    apart = 400 * DAY / count
    rows = [
        _request(
            among,
            number,
            dice,
            at=now - (count - number) * apart,
            is_open=number >= count - waiting,
        )
        for number in range(count)
    ]
    for row, hold in zip(
        rows, _stored([Hold(team_id=row.team_id) for row in rows]), strict=True
    ):
        row.hold = hold
    _store(Request, rows)
    _store(Revision, [_revision(row) for row in rows])
    _store(Evaluation, list(_evaluations(rows, now)))
    _store(Step, [step for row in rows for step in _steps(row)])
    decided = [row for row in rows if row.decided_at]
    steps = {
        step.request_id: step
        for step in Step.objects.filter(position=0, done_at__isnull=False)
    }
    _store(Decision, [_decision(row, steps[row.pk], among.lead) for row in decided])
    granted = [row for row in decided if row.approved_count]
    for row, allocation in zip(
        granted, _stored([_allocation(row) for row in granted]), strict=True
    ):
        row.allocation = allocation
    Request.objects.bulk_update(granted, ["allocation"], batch_size=BATCH)


def _request(
    among: Crowd, number: int, dice: random.Random, *, at: datetime, is_open: bool
) -> Request:
    place = dice.randrange(TEAMS)
    flavor, purpose = (
        among.flavors[place % CLUSTERS],
        dice.choice(Request.Purpose.values),
    )
    gpus, days = dice.choice((3, 4, 4, 5, 6, 8, 16)), dice.randint(1, 30)
    is_approved = not is_open and dice.random() < 0.8
    decided_at = None if is_open else at + dice.randint(1, 60) * HOUR
    until = (decided_at or at) + days * DAY
    state = (
        State.WAITING if is_open else State.APPROVED if is_approved else State.REJECTED
    )
    return Request(
        team_id=among.tenancies[place].team_id,
        tenancy=among.tenancies[place],
        requester=among.people[place],
        flavor=flavor,
        count=gpus,
        gpus=gpus,
        offering="gpus",
        spec={
            "flavor": f"{flavor.cluster.name}/{flavor.name}",
            "gpus": gpus,
            "purpose": purpose,
        },
        until=until,
        purpose=purpose,
        reason=REASON.format(number),
        state=state,
        usd=PRICE * gpus * days * 24,
        approved_count=gpus if is_approved else None,
        approved_until=until if is_approved else None,
        created_at=at,
        asked_at=at,
        updated_at=decided_at or at,
        decided_at=decided_at,
        lapses_at=at + 14 * DAY,
    )


def _revision(row: Request) -> Revision:
    return Revision(
        request=row,
        number=1,
        spec=row.spec,
        count=row.count,
        until=row.until,
        reason=row.reason,
        usd=row.usd,
        by_id=row.requester_id,
        at=row.created_at,
    )


def _evaluations(rows: Sequence[Request], now: datetime) -> Iterator[Evaluation]:
    """The answer that each was given: people decide, because it is for many GPUs. One of a size is that of all."""
    version, policy = policy_in_force(now)
    answers = dict[int, Mapping[str, Any]]()
    for row in rows:
        if row.count not in answers:
            ask = Ask(count=row.count, until=now + 30 * DAY, usd_per_hour_each=PRICE)
            standing = Standing(now=now, free_gpus=2_000, total_gpus=2_000, budget={})
            judged, (inputs, digest) = (
                evaluate(ask, standing, policy),
                inputs_of(ask, standing, version),
            )
            answers[row.count] = {
                "outcome": judged.outcome,
                "answer": answer_of(judged),
                "remedies": remedies_shown(remedies_of(ask, standing, policy)),
                "inputs": inputs,
                "input_hash": digest,
            }
        yield Evaluation(
            request=row,
            policy=version,
            content_version=1,
            at=row.created_at,
            **answers[row.count],
        )


def _steps(row: Request) -> Iterator[Step]:
    for position, plan in enumerate([LEADS, LEADERSHIP][: 2 if row.gpus >= 8 else 1]):
        step = Step(
            request=row,
            version=1,
            position=position,
            seat=plan.by,
            label=plan.words,
            escalate_to=plan.escalate_to,
            plan={
                "remind": plan.remind_hours,
                "target": plan.target_hours,
                "escalate": plan.escalate_hours,
            },
            done_at=row.decided_at,
        )
        if position == 0 or row.decided_at:
            start(step, now=row.created_at)
        yield step


def _decision(row: Request, step: Step, lead: User) -> Decision:
    assert row.decided_at is not None
    return Decision(
        request=row,
        requester_id=row.requester_id,
        by=lead,
        seat_of=lead,
        step=step,
        content_version=1,
        verdict="approve" if row.approved_count else "reject",
        count=row.approved_count,
        until=row.approved_until,
        usd=row.usd,
        reason=""
        if row.approved_count
        else "The cluster is reserved for the release that week.",
        at=row.decided_at,
    )


def _allocation(row: Request) -> Allocation:
    assert row.decided_at is not None
    assert row.approved_count is not None
    assert row.tenancy is not None
    assert row.flavor is not None
    return Allocation(
        team_id=row.team_id,
        tenancy=row.tenancy,
        flavor=row.flavor,
        hold=row.hold,
        requester_id=row.requester_id,
        offering=row.offering,
        spec=row.spec,
        count=row.approved_count,
        gpus=row.approved_count,
        price_per_gpu_hour=PRICE,
        usd_per_hour=row.approved_count * PRICE,
        starts_at=row.decided_at,
        begun_at=row.decided_at,
        charged_from=row.decided_at,
        until=row.until,
        kept_until=row.until,
        generation=row.tenancy.generation,
        ended_at=row.until,
        end_reason=Allocation.End.EXPIRED,
        ended_by="portal",
    )


def _stored(rows: Sequence[Row]) -> Sequence[Row]:
    """The rows with their keys, which others refer to."""
    _store(type(rows[0]), rows)
    return rows


def _store(model: type[Model], rows: Sequence[Model]) -> None:
    left = iter(rows)
    while batch := list(islice(left, BATCH)):
        model._default_manager.bulk_create(batch)


def _person(number: int) -> User:
    name = f"Person {number}"
    return User(
        tid=TENANT,
        oid=UUID(int=number + 1),
        name=name,
        username=f"person{number}@example.com",
    )


def _team(number: int, lead: User) -> Team:
    slug = f"team-{number}"
    return Team(
        name=f"Team {number}",
        slug=slug,
        entra_group=UUID(int=number + 1),
        entra_group_name=slug,
        cost_centre=f"CC-{number}",
        created_by=lead,
    )


def _cluster(number: int, now: datetime) -> Cluster:
    return Cluster(
        name=f"cluster-{number}",
        title=f"Cluster {number}",
        region="eastus",
        purpose=Cluster.Purpose.TRAINING,
        reachable=True,
        version="v1.36.2",
        last_contact_at=now,
        looked_at=now,
    )


def _flavor(cluster: Cluster, now: datetime) -> Flavor:
    return Flavor(
        cluster=cluster,
        name="a100",
        product="A100",
        memory_gb=80,
        gpus_per_node=8,
        price_per_gpu_hour=PRICE,
        gpus_total=2_000,
        gpus_seen_at=now,
    )
