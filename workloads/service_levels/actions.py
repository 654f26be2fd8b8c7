"""What changes about service levels: promised, promised otherwise, measured no more."""

import re
from datetime import datetime

from django.db import transaction

from accounts.models import Team, User
from accounts.roles import Permission
from approvals.models import Request
from audit.events import Kind
from audit.log import record
from provisioning.models import Tenancy
from web.refusals import BadInput, Conflict, Missing, NoRight
from workloads.service_levels.meters import Meter
from workloads.service_levels.models import ServiceLevel
from workloads.service_levels.tiers import Tier

# The name of a Service (RFC 1035 label).
SERVICE = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
MOST_OF_A_PLACE = 20
NOT_A_LEAD = "The team’s leads and platform leads say what its services promise."


def may_set(user: User, team: Team) -> bool:
    """Whether somebody says what the services of a team promise: its leads, and platform leads."""
    return user.leads(team) or user.may(Permission.DECIDE_AS_PLATFORM)


def check_may_set(user: User, team: Team) -> None:
    """Let those pass who may; raises NoRight for everybody else."""
    if not may_set(user, team):
        raise NoRight(NOT_A_LEAD, code="not_a_lead")


@transaction.atomic
def add_level(
    tenancy_id: int,
    *,
    service: str,
    meter: str,
    tier: str,
    by: User,
    now: datetime,
    request_id: int | None = None,
) -> ServiceLevel:
    """Have a Service of a namespace measured from now on, and held against its tier; the request is what it runs on.

    Whether there is such a Service is not asked: it may be made later, and its page says when nothing is known of it.
    Raises BadInput naming the field, NoRight, Conflict for one that is measured already, or one too many.
    """
    # Two that are added at once count each other.
    tenancy = Tenancy.objects.locked().get(pk=tenancy_id)
    check_may_set(by, tenancy.team)
    service = service.strip()
    if not SERVICE.fullmatch(service):
        raise BadInput(
            "Give the name of the Service alone: a letter, then letters, digits and dashes, all small, at most 63.",
            code="no_service_name",
            field="service",
        )
    if not tenancy.is_here:
        raise Conflict(
            "The team leaves this place, so nothing new is promised there.",
            code="is_leaving",
            field="tenancy",
        )
    if request_id is not None:
        _check_request(request_id, tenancy)
    mine = ServiceLevel.objects.filter(tenancy=tenancy)
    if mine.filter(service=service).exists():
        raise Conflict(
            f"{service} is measured already. Change what it promises instead.",
            code="named_already",
            field="service",
        )
    if mine.count() >= MOST_OF_A_PLACE:
        raise Conflict(
            f"{MOST_OF_A_PLACE} services of this namespace are measured. Remove one first.",
            code="too_many",
        )
    level = ServiceLevel.objects.create(
        tenancy=tenancy,
        service=service,
        meter=Meter(meter),
        tier=Tier(tier),
        request_id=request_id,
        set_at=now,
        set_by=by,
    )
    _record(Kind.SERVICE_LEVEL_SET, level, by)
    return level


@transaction.atomic
def change_level(
    level_id: int, *, meter: str, tier: str, by: User, now: datetime
) -> ServiceLevel:
    """Have a service promise something else, or be counted by something else; what was counted stays.

    The same again changes nothing. Raises NoRight, and Missing for one that is removed.
    """
    level = _locked(level_id, by=by)
    if (level.meter, level.tier) == (meter, tier):
        return level
    if level.meter != meter:
        # What another one knew of it says nothing of this one.
        level.seen_at, level.problem = None, ""
    if level.tier != tier:
        # What leads know was held against another promise.
        level.told, level.told_slow = "", False
    level.meter, level.tier = Meter(meter), Tier(tier)
    level.set_at, level.set_by = now, by
    level.save()
    _record(Kind.SERVICE_LEVEL_SET, level, by)
    return level


@transaction.atomic
def remove_level(level_id: int, *, by: User) -> None:
    """Measure a service no more, and forget what was counted of it. Raises NoRight, and Missing."""
    level = _locked(level_id, by=by)
    pk = level.pk
    level.delete()
    level.pk = pk
    _record(Kind.SERVICE_LEVEL_REMOVED, level, by)


def _check_request(request_id: int, tenancy: Tenancy) -> None:
    if not Request.objects.filter(pk=request_id, tenancy=tenancy).exists():
        raise BadInput(
            "Name a request for something in this namespace, or none.",
            code="no_such_request",
            field="request",
        )


def _locked(level_id: int, *, by: User) -> ServiceLevel:
    level = ServiceLevel.objects.locked().described().filter(pk=level_id).first()
    if level is None:
        raise Missing("It is measured no more.", code="not_found")
    check_may_set(by, level.team)
    return level


def _record(kind: Kind, level: ServiceLevel, by: User) -> None:
    record(
        kind,
        actor=by.as_actor(),
        subject=("service_level", level.pk),
        team_id=level.team.pk,
        name=level.service,
        place=level.tenancy.namespace,
        tier=level.objective.title,
        counted_by=level.meter_label,
    )
