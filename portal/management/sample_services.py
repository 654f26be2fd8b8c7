"""Services of the demo with a month behind them: one whose error budget burns, and one that is well."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from accounts.models import User
from provisioning.models import Tenancy
from workloads.models import ServiceDay, ServiceLevel
from workloads.service_levels.actions import add_level
from workloads.service_levels.budget import DAYS, Day, State
from workloads.service_levels.measuring import last_look
from workloads.service_levels.meters import Meter
from workloads.service_levels.tiers import Tier

DAY_SECONDS = 86_400
# At weekends fewer people speak; what failed did so four days ago.
WEEKEND, INCIDENT = 0.55, 4


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A service, the requests of a usual second, the share that fails, and the latency of 99 of 100 in seconds.

    `burnt` is the share of the month's error budget that one bad day used.
    """

    service: str
    tier: Tier
    per_second: float
    failed: float
    p99: float
    burnt: float = 0


SAMPLES = (
    Sample(
        service="transcribe",
        tier=Tier.NEAR_REAL_TIME,
        per_second=3,
        failed=0.0002,
        p99=1.3,
        burnt=0.55,
    ),
    Sample(
        service="speak", tier=Tier.REAL_TIME, per_second=12, failed=0.0001, p99=0.16
    ),
)


def add(tenancy: Tenancy, *, by: User, now: datetime) -> None:
    """Have the services of a place measured, as if somebody had said a month ago what they promise."""
    until = last_look(now)
    for sample in SAMPLES:
        level = add_level(
            tenancy.pk,
            service=sample.service,
            meter=Meter.ISTIO,
            tier=sample.tier,
            by=by,
            now=now - timedelta(DAYS),
        )
        days = days_of(sample, until=until)
        ServiceDay.objects.bulk_create(
            ServiceDay(
                level=level,
                day=one.day,
                requests=one.requests,
                failed=one.failed,
                p99=one.p99,
            )
            for one in days
        )
        # Its leads know of the bad day by now.
        told = State.FAST if sample.burnt else ""
        ServiceLevel.objects.filter(pk=level.pk).update(
            measured_until=until, seen_at=until, told=told
        )


def traffic() -> Iterator[dict[str, Any]]:
    """What the sandbox's Prometheus is to say of the services from now on."""
    samples = {one.service: one for one in SAMPLES}
    levels = ServiceLevel.objects.filter(service__in=samples)
    for level in levels.select_related("tenancy__cluster"):
        one = samples[level.service]
        yield {
            "cluster": level.cluster.name,
            "namespace": level.tenancy.namespace,
            "service": level.service,
            "meter": level.meter,
            "per_second": one.per_second,
            "failed": one.failed,
            "p99": one.p99,
        }


def days_of(sample: Sample, *, until: datetime) -> list[Day]:
    """A month of believable days, the last one as long as it is; the same ones each time."""
    until = until.astimezone(UTC)
    dates = [until.date() - timedelta(ago) for ago in range(DAYS - 1, -1, -1)]
    usual = [_usual(sample, one) for one in dates]
    so_far = (until.hour * 60 + until.minute) / (24 * 60)
    usual[-1] *= so_far
    budget = sum(usual) * float(sample.tier.objective.may_fail)
    bad = dates[-1 - INCIDENT] if sample.burnt else None
    return [
        Day(
            day=one,
            requests=requests,
            failed=requests * sample.failed
            + (sample.burnt * budget if one == bad else 0),
            p99=sample.p99 * (1.7 if one == bad else 1 + one.day % 4 / 40),
        )
        for one, requests in zip(dates, usual, strict=True)
    ]


def _usual(sample: Sample, one: date) -> float:
    weekend = WEEKEND if one.weekday() >= 5 else 1
    return sample.per_second * DAY_SECONDS * weekend * (1 + (one.day * 7 % 5 - 2) / 25)
