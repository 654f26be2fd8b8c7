"""Gathering what the policy may look at; the only place where its inputs come from."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import OuterRef, Sum

from allocations import budgets, money
from allocations.models import Allocation
from allocations.totals import total
from approvals.models import Decision, PolicyVersion
from approvals.policy import Ask, Evaluation, Standing, Thresholds
from fleet.models import Flavor
from provisioning.models import Tenancy


def policy_in_force(now: datetime) -> tuple[PolicyVersion, Thresholds]:
    """The newest policy whose time has come, and its numbers."""
    version = PolicyVersion.objects.filter(active_from__lte=now).order_by("-number").first()
    if version is None:
        raise PolicyVersion.DoesNotExist("No policy is in force: run the migrations.")
    return version, thresholds_from(version.thresholds)


def thresholds_from(stored: Mapping[str, Any]) -> Thresholds:
    """The thresholds that were stored as JSON."""
    values = dict(stored)
    values["automatic_usd"] = Decimal(values["automatic_usd"])
    values["automatic_environments"] = tuple(values["automatic_environments"])
    return Thresholds(**values)


def gather(
    *,
    tenancy: Tenancy,
    flavor: Flavor,
    until: datetime,
    thresholds: Thresholds,
    now: datetime,
    own: str = "",
) -> Standing:
    """What the team holds and may spend, what is free and what it costs; writes nothing.

    `own` is the reference of the request being judged: what it has set aside already counts as left.
    """
    months = sorted(money.by_month(gpus=1, price=Decimal(1), start=now, end=until))
    held, recent = _gpus(tenancy, flavor, since=now - timedelta(days=thresholds.window_days))
    return Standing(
        now=now,
        held_gpus=held,
        recent_automatic_gpus=recent,
        free_gpus=flavor.free,
        total_gpus=flavor.gpus_total,
        price_per_gpu_hour=flavor.price_per_gpu_hour,
        budget_left=budgets.left_by_month(tenancy.team, months, own=own),
    )


def _gpus(tenancy: Tenancy, flavor: Flavor, *, since: datetime) -> tuple[int, int]:
    """GPUs that the tenancy holds of this flavor, and that the policy alone gave to the team since a moment.

    The latter on any cluster and of any kind: ten small asks are one large one.
    """
    held = Allocation.objects.live().filter(tenancy=OuterRef("pk"), flavor=flavor)
    given = Decision.objects.filter(
        request__team=OuterRef("team"), by=None, verdict=Decision.Verdict.APPROVE, at__gte=since
    )
    row = (
        Tenancy.objects.filter(pk=tenancy.pk)
        .values_list(total(held, Sum("gpus"), by="tenancy"), total(given, Sum("gpus"), by="request__team"))
        .get()
    )
    return int(row[0] or 0), int(row[1] or 0)


def inputs_of(ask: Ask, standing: Standing, version: PolicyVersion) -> tuple[dict[str, Any], str]:
    """What an evaluation looked at, as JSON, and its SHA-256."""
    plain = {
        "policy": version.number,
        "ask": {key: _plain(value) for key, value in asdict(ask).items()},
        "standing": {key: _plain(value) for key, value in asdict(standing).items()},
    }
    return plain, hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def answer_of(evaluation: Evaluation) -> dict[str, Any]:
    """An evaluation as JSON, the same for page, API and store."""
    return {
        "outcome": evaluation.outcome.value,
        "sentence": evaluation.sentence,
        "route": [seat.value for seat in evaluation.route],
        "rules": [asdict(rule) for rule in evaluation.rules],
        "usd": str(evaluation.usd),
        "usd_per_day": str(evaluation.usd_per_day),
        "gpu_hours": str(evaluation.gpu_hours),
    }


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): [str(part) for part in pair] for key, pair in value.items()}
    return value
