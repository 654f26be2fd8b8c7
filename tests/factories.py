"""Builders for rows that tests start from: each makes one thing that is whole, and takes what should differ."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any, TypeVar
from uuid import UUID, uuid4

from django.db.models import Model
from django.utils import timezone

from accounts.models import (
    CostCentre,
    GroupHeld,
    Identity,
    Membership,
    Project,
    RoleHeld,
    SeatFill,
    Team,
    User,
)
from accounts.roles import Role
from allocations.actions import Granted
from allocations.changes import refresh
from allocations.models import Allocation, Hold
from allocations.schedule import Provisioner
from approvals.models import Request
from approvals.requests.actions import submit
from approvals.requests.wanted import Wanted
from capacity.models import ModelAccount, ModelEndpoint, Reservation, ReservationDay
from fleet.models import Cluster, Flavor
from manual.briefs import Instructions
from manual.models import Task
from notebooks.models import Hub, NotebookServer, Profile, ProfileVersion
from policy.document import (
    ENGINEERING_LEADERSHIP,
    PLATFORM_LEADS,
    Policy,
    Thresholds,
    seat_words,
    to_json,
)
from policy.models import PolicyVersion
from provisioning.actions import create_tenancy
from provisioning.desired.manifests import tenancy_objects
from provisioning.models import Tenancy
from reconciling.conditions import READY, upsert
from workloads.models import Run, ServiceLevel
from workloads.runs.planning.plan import Submission

TENANT = UUID("11111111-1111-4111-8111-111111111111")
M = TypeVar("M", bound=Model)
_numbers = count(1)


def oid(number: int) -> UUID:
    """An object id as the sandbox numbers its people."""
    return UUID(f"00000000-0000-4000-8000-{number:012d}")


def group_oid(number: int) -> UUID:
    """An object id as the sandbox numbers its groups."""
    return UUID(f"00000000-0000-4000-9000-{number:012d}")


# Later than every moment that a test passes in: the directory is never asked about these people by itself.
CONFIRMED = datetime(2100, 1, 1, tzinfo=UTC)


def person(
    name: str = "",
    *roles: Role,
    teams: Iterable[Team] = (),
    groups: Iterable[object] = (),
    **fields: Any,
) -> User:
    """Somebody who has signed in, with these roles, in these teams and Entra groups, confirmed for ever."""
    number = next(_numbers)
    name = name or f"Person {number}"
    defaults = {
        "tid": TENANT,
        "oid": oid(10_000 + number),
        "username": f"person{number}@example.com",
        "groups_known_at": CONFIRMED,
        "managers_known_at": CONFIRMED,
        "signed_in_at": timezone.now(),
    }
    user = User.objects.create(**(defaults | {"name": name} | fields))
    GroupHeld.objects.bulk_create(
        GroupHeld(user=user, group=str(group)) for group in groups
    )
    RoleHeld.objects.bulk_create(
        RoleHeld(user=user, role=role) for role in roles or (Role.DATA_SCIENTIST,)
    )
    for team in teams:
        join(team, user)
    return user


def notebooks_on(
    cluster: Cluster, *, slug: str = "pytorch", flavor: str = "a100"
) -> Profile:
    """A published profile with one to eight GPUs of a flavor, and a hub on the cluster that starts it."""
    Hub.objects.get_or_create(
        cluster=cluster,
        defaults={
            "address": f"https://{cluster.name}.hub.example.com",
            "token_file": "hub",
            "next_look_at": CONFIRMED,
        },
    )
    sizes = "".join(
        f"      g{count}: {{title: {count} GPU, gpus: {count}}}\n"
        for count in (1, 2, 4, 8)
    )
    text = (
        f"slug: {slug}\ntitle: PyTorch\nimage: registry.example.com/pytorch:2.9\ncpus: 8\nmemory: 64\n"
        f"flavor: {flavor}\noptions:\n  size:\n    title: GPUs\n    choices:\n{sizes}"
    )
    made, is_new = Profile.objects.get_or_create(slug=slug, defaults={"state": "draft"})
    if is_new:
        by = User.objects.order_by("pk").first() or person()
        version = ProfileVersion(
            profile=made, number=1, title="PyTorch", text=text, by=by, at=timezone.now()
        )
        version.save()
        made.published, made.state = 1, "published"
        made.save(update_fields=["published", "state"])
    return made


def join(team: Team, user: User, *, lead: bool = False) -> Membership:
    """Make somebody a member of a team."""
    user.__dict__.pop("teams", None)
    part = Membership.Part.LEAD if lead else Membership.Part.MEMBER
    return Membership.objects.create(team=team, user=user, part=part)


def team(name: str = "", *, by: User | None = None, **fields: Any) -> Team:
    """A team with one project; nobody is in it yet."""
    number = next(_numbers)
    name = name or f"Team {number}"
    slug = name.lower().replace(" ", "-")
    defaults = {
        "slug": slug,
        "entra_group": group_oid(10_000 + number),
        "entra_group_name": f"{slug}-team",
        "cost_centre": f"CC-T{number}",  # T: no test writes such a code by hand
        "created_by": by or person(),
    }
    made = Team.objects.create(**(defaults | {"name": name} | fields))
    cost_centre(made.cost_centre)
    Project.objects.create(team=made, slug="main")
    return made


def identity(team: Team, by: User, **fields: Any) -> Identity:
    """An application that runs training in a team's name, named by this person, past the action."""
    usual = {"client_id": uuid4(), "object_id": uuid4(), "scope": "run"}
    return Identity.objects.create(
        **{"team": team, "created_by": by, "name": "GitHub", **usual, **fields}
    )


def cost_centre(code: str) -> CostCentre:
    """One that is confirmed."""
    now = timezone.now()
    found, _ = CostCentre.objects.get_or_create(
        code=code, defaults={"created_at": now, "confirmed_at": now}
    )
    CostCentre.objects.filter(pk=found.pk).update(confirmed_at=now)
    return found


def cluster(name: str = "", **fields: Any) -> Cluster:
    """A cluster that answers."""
    name = name or f"cluster-{next(_numbers)}"
    now = timezone.now()
    defaults = {
        "title": name.capitalize(),
        "region": "eastus",
        "purpose": Cluster.Purpose.TRAINING,
        "reachable": True,
        "version": "v1.36.2",
        "last_contact_at": now,
        "looked_at": now,
    }
    return Cluster.objects.create(**(defaults | {"name": name} | fields))


def flavor(on: Cluster | None = None, name: str = "", **fields: Any) -> Flavor:
    """24 A100 at $3.67 unless told otherwise."""
    name = name or f"a100-{next(_numbers)}"
    defaults = {
        "product": "A100",
        "memory_gb": 80,
        "gpus_per_node": 8,
        "price_per_gpu_hour": Decimal("3.67"),
        "gpus_total": 24,
        "gpus_seen_at": timezone.now(),
        "node_labels": {"accelerator": name},
        "node_taints": [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}],
    }
    values = defaults | {"cluster": on or cluster(), "name": name} | fields
    return Flavor.objects.create(**({"gpus_ready": values["gpus_total"]} | values))


def seats_read(*, at: datetime | None = None) -> None:
    """Who has the seats of the roles was read from the directory."""
    for seat in (PLATFORM_LEADS, ENGINEERING_LEADERSHIP):
        SeatFill.objects.update_or_create(
            seat=seat,
            defaults={"words": seat_words(seat), "read_at": at or timezone.now()},
        )


def tenancy(
    of: Team | None = None,
    on: Cluster | None = None,
    *,
    environment: str = "dev",
    project: str = "main",
) -> Tenancy:
    """A project's environment on a cluster, wanted and not yet looked at."""
    of, now = of or team(), timezone.now()
    found, _ = Project.objects.get_or_create(team=of, slug=project)
    made = create_tenancy(
        team=of,
        cluster=on or cluster(),
        project=found,
        environment=environment,
        now=now,
    )
    refresh(made, actor=of.created_by.as_actor(), now=now)
    return Tenancy.objects.get(pk=made.pk)


def leave(
    of: Tenancy, *, to: str, at: datetime, kept: timedelta = timedelta(0)
) -> None:
    """Take a place step by step to a stage of its leaving, past every action; once retained it is `kept` so long."""
    steps: list[dict[str, Any]] = [
        {"stage": "leaving", "is_protected": False, "leaves_at": at},
        {"stage": "retained", "stop": "HoldAndDrain", "retained_until": at + kept},
        {"stage": "removing"},
        {"stage": "gone", "gone_at": at + kept},
    ]
    for fields in steps:
        Tenancy.objects.filter(pk=of.pk).update(**fields)
        if fields["stage"] == to:
            return


def make_true(
    of: Tenancy, *, failed: str = "", message: str = "", at: datetime | None = None
) -> Tenancy:
    """What a worker leaves after a pass: every object true, or one kind `failed` and those after it waiting."""
    now = at or timezone.now()
    seen, state = [], "true"
    for manifest in tenancy_objects(Tenancy.objects.get(pk=of.pk).desired):
        meta = manifest["metadata"]
        hit = manifest["kind"] == failed and state == "true"
        seen.append(
            {
                "kind": manifest["kind"],
                "name": meta["name"],
                "namespace": meta.get("namespace", ""),
                "state": "failed" if hit else state,
                "since": now.isoformat(),
                "message": message if hit else "",
            }
        )
        state = "waiting" if hit else state
    ready = {
        "type": "Ready",
        "status": "False" if failed else "True",
        "reason": "Refused" if failed else "AllObjectsTrue",
        "message": message or "Every object stands as wanted.",
        "since": now.isoformat(),
    }
    row = Tenancy.objects.get(pk=of.pk)
    row.objects_seen, row.conditions, row.is_true, row.last_looked_at = (
        seen,
        [ready],
        not failed,
        now,
    )
    if not failed:
        row.observed_generation, row.true_since = row.generation, now
    row.save()
    return row


def refuse(of: Tenancy, message: str) -> None:
    """What a worker leaves whose pass was refused before it looked at an object: those stand as they were seen."""
    ready = upsert(
        [],
        READY,
        status="False",
        reason="Refused",
        message=message,
        now=timezone.now(),
    )
    Tenancy.objects.filter(pk=of.pk).update(is_true=False, conditions=ready)


def request(
    by: User,
    at: Tenancy,
    of: Flavor,
    *,
    gpus: int = 1,
    days: float = 3,
    purpose: str = "training",
    reason: str = "Fine-tune the detector on the November data.",
    now: datetime | None = None,
) -> Request:
    """An ask through the action itself: a small one is approved and issued at once."""
    now = now or timezone.now()
    wanted = Wanted.of_gpus(
        tenancy=Tenancy.objects.select_related("team", "cluster").get(pk=at.pk),
        flavor=Flavor.objects.select_related("cluster").get(pk=of.pk),
        gpus=gpus,
        until=now + timedelta(days=days),
        purpose=purpose,
        reason=reason,
    )
    return submit(wanted, by=by, now=now)


def hold(team: Team, number: int | None = None) -> Hold:
    """What money is set aside under; the same one for the same number."""
    if number is None:
        return Hold.objects.create(team=team)
    return Hold.objects.get_or_create(pk=number, defaults={"team": team})[0]


def more_like(
    of: Request, number: int, *, apart: timedelta = timedelta(0)
) -> list[Request]:
    """So many more requests like one that waits, with how it was judged and who decides: past every action, at once."""
    moments = [of.created_at + apart * (n + 1) for n in range(number)]
    holds = Hold.objects.bulk_create(Hold(team=of.team) for _ in moments)
    made = Request.objects.bulk_create(
        _copy(of, created_at=moment, hold_id=hold.pk)
        for moment, hold in zip(moments, holds, strict=True)
    )
    for related in (of.revisions, of.evaluations, of.steps):
        rows = list(related.all())
        related.model.objects.bulk_create(
            _copy(row, request_id=each.pk) for each in made for row in rows
        )
    return made


def _copy(row: M, **fields: Any) -> M:
    """A row like another, not saved yet."""
    names = [each.attname for each in row._meta.concrete_fields if not each.primary_key]
    return type(row)(**{name: getattr(row, name) for name in names} | fields)


def allocation(
    by: User, at: Tenancy, of: Flavor, *, gpus: int = 1, days: float = 3
) -> Allocation:
    """What an ask that the policy approves at once gives."""
    asked = request(by, at, of, gpus=gpus, days=days)
    return Allocation.objects.get(hold=asked.hold_id, ended_at=None)


def more_volumes(of: Allocation, number: int) -> None:
    """So many more volumes like one that is held, each with a name of its own: past every action, at once."""
    holds = Hold.objects.bulk_create(Hold(team=of.team) for _ in range(number))
    Allocation.objects.bulk_create(
        _copy(of, hold_id=hold.pk, spec={**of.spec, "name": f"more-{hold.pk}"})
        for hold in holds
    )


def granted(
    by: User, at: Tenancy, of: Flavor, *, gpus: int = 1, until: datetime
) -> Granted:
    """GPUs as an approval would grant them."""
    return Granted(
        team=at.team,
        requester=by,
        hold=hold(at.team),
        offering="gpus",
        spec={"flavor": of.key, "gpus": gpus},
        count=gpus,
        title=f"{gpus} × {of.product}",
        instructions=Instructions(title="GPUs", set_up="Nothing.", thing="the GPUs"),
        provisioner=Provisioner.KUBERNETES,
        until=until,
        gpus=gpus,
        tenancy=at,
        flavor=of,
    )


def task(request: Request) -> Task:
    """Something to carry out for a request, which nobody has taken."""
    return Task.objects.create(
        team=request.team,
        wanted_by=request.requester,
        title=request.name(),
        instruction="Make it.",
        request_number=request.pk,
        until=request.until,
        created_at=timezone.now(),
    )


def policy(of: Policy | Thresholds, *, now: datetime) -> PolicyVersion:
    """The next version of the policy, in force from `now`, written by one person and activated by another."""
    document = to_json(of if isinstance(of, Policy) else Policy(thresholds=of))
    return PolicyVersion.objects.create(
        number=PolicyVersion.objects.latest("number").number + 1,
        document=document,
        active_from=now,
        why="A test's.",
        proposed_by=person(),
        activated_by=person(),
    )


def run(
    tenancy: Tenancy, requester: User, *, title: str = "Fine-tune BERT", **fields: Any
) -> Run:
    """A run that was submitted and not sent; its job is the least that there is. One that ran did so in one attempt."""
    at = fields.pop("created_at", None) or timezone.now()
    name = fields.pop("name", None) or f"run-{next(_numbers):04d}"
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": tenancy.namespace},
        "spec": {},
    }
    asked = Submission(
        template="single-node",
        title=title,
        values={"image": "train:1", "program": ("train.py",)},
    )
    made = Run.objects.create(
        team=tenancy.team,
        tenancy=tenancy,
        requester=requester,
        title=title,
        name=name,
        manifests=[job],
        usd_per_hour=Decimal(fields.pop("usd_per_hour", "7.34")),
        created_at=at,
        requeue_at=at,
        **{
            "template": "single-node",
            "submission": asked.as_json(),
            "gpus": 2,
            "limit_seconds": 3_600,
            "limit_on_cluster": fields.get("limit_seconds", 3_600),
            **fields,
        },
    )
    since = made.running_since or (made.ended_at and made.started_at)
    if since:
        made.run_attempts.create(number=1, started_at=since, ended_at=made.ended_at)
    return made


def notebook(
    tenancy: Tenancy, owner: User, *, title: str = "Explore", **fields: Any
) -> NotebookServer:
    """A notebook server that was launched and that no hub has taken yet; of a profile that is a draft."""
    at = fields.pop("created_at", None) or timezone.now()
    profile, is_new = Profile.objects.get_or_create(slug="explore")
    if is_new:
        text = "{slug: explore, title: Explore, image: registry.example.com/notebook:1, cpus: 1, memory: 4}"
        profile.versions.create(number=1, title="Explore", text=text, by=owner, at=at)
    return NotebookServer.objects.create(
        team=tenancy.team,
        tenancy=tenancy,
        owner=owner,
        profile=profile,
        profile_version=1,
        username=str(owner.oid),
        name=f"nb-{next(_numbers):012x}",
        title=title,
        usd_per_hour=Decimal(fields.pop("usd_per_hour", "3.67")),
        created_at=at,
        launched_at=at,
        requeue_at=at,
        **{"gpus": 1, **fields},
    )


def service_level(tenancy: Tenancy, by: User, **fields: Any) -> ServiceLevel:
    """A service of a place that promises near real-time since a moment ago, and was not measured yet."""
    usual = {"service": "mistral", "meter": "istio", "tier": "near_real_time"}
    return ServiceLevel.objects.create(
        tenancy=tenancy,
        set_by=by,
        set_at=fields.pop("set_at", None) or timezone.now(),
        **usual | fields,
    )


def model_endpoint(team: Team, **fields: Any) -> ModelEndpoint:
    """A model that was granted in Azure OpenAI and that no worker has made yet."""
    now = timezone.now()
    account = ModelAccount.objects.create(
        team=team,
        subscription=str(TENANT),
        resource_group="gpu-platform",
        region="eastus",
        created_at=now,
        requeue_at=now,
        generation=1,
    )
    usual = {"model": "gpt-4o", "sku": "Standard", "capacity": 30, "created_at": now}
    return ModelEndpoint.objects.create(team=team, account=account, **usual | fields)


def reservation(
    team: Team, *, machines: int = 2, flavor: Flavor | None = None, **fields: Any
) -> Reservation:
    """Machines that Azure holds for a team, as a worker saw them last; each in a zone of its own number."""
    at = fields.pop("at", None) or timezone.now()
    usual = {
        "subscription": "44444444-4444-4444-8444-444444444444",
        "resource_group": "gpu-platform",
        "region": "eastus",
        "zone": str(next(_numbers) % 1_000),
        "vm_size": "Standard_NC24ads_A100_v4",
        "gpus_each": 1,
        "usd_per_hour_each": Decimal("3.673"),
        "state": "reserved",
        "generation": 1,
        "observed_generation": 1,
        "held": machines,
        "used": 0,
        "created_at": at,
        "reserved_at": at,
        "seen_at": at,
        "requeue_at": at + timedelta(minutes=5),
    }
    return Reservation.objects.create(
        team=team, flavor=flavor, machines=machines, **usual | fields
    )


def reserved_days(of: Reservation, used: Iterable[int], *, over: int = 0) -> None:
    """Days of a reservation until now, the newest last, on each of which so many of its machines ran at all looks."""
    numbers, now = [*used], timezone.now()
    of.reserved_at = now - timedelta(days=len(numbers))
    of.save(update_fields=["reserved_at"])
    looks = 100
    for back, number in enumerate(reversed(numbers)):
        ReservationDay.objects.create(
            reservation=of,
            day=(now - timedelta(days=back)).date(),
            looks=looks,
            held_sum=looks * of.held,
            used_sum=looks * min(number, of.held),
            most=number,
            over=over,
            last_at=now - timedelta(days=back),
        )


def machines_of(
    of: Reservation, by: User, *, count: int = 2, days: float = 5
) -> Allocation:
    """A grant of machines of a reservation, past every action; it costs since it was granted."""
    now = timezone.now()
    return Allocation.objects.create(
        team=of.team,
        hold=hold(of.team),
        requester=by,
        reservation=of,
        offering="reservation",
        provisioner=Provisioner.AZURE,
        spec={
            "region": of.region,
            "vm_size": of.vm_size,
            "instances": count,
            "zone": of.zone,
            "nodes_for": "",
        },
        count=count,
        title=f"{count} × {of.vm_size} reserved",
        place=of.region,
        gpus=count * of.gpus_each,
        price_per_gpu_hour=Decimal(0),
        usd_per_hour=count * of.usd_per_hour_each,
        starts_at=now,
        begun_at=now,
        charged_from=now,
        until=now + timedelta(days=days),
        kept_until=now + timedelta(days=days),
    )
