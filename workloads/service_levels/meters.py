"""What counts the requests of a service, asked in the words of Prometheus. Pure.

Sources: ingress-nginx, "Monitoring" in its user guide; Istio, "Istio Standard Metrics"; the metrics of
prometheus-fastapi-instrumentator, which vLLM serves, too.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from math import isfinite
from typing import Any

# Of how long a latency is told: shorter ones jump with single requests.
LATENCY_SECONDS = 3_600
# Of fewer requests within that hour the slowest would be the latency of 99 of 100.
ENOUGH = 100
# More than that in a span, or of seconds, nobody has: what says so lies, and sums of it would be no numbers.
BELIEVED = 1e12
# The bucket of all requests, and those that have an end.
ALL, ENDING = 'le="+Inf"', 'le!="+Inf"'
REQUESTS, FAILED, P99, HOUR, REACHED = "requests", "failed", "p99", "hour", "reached"


class Meter(StrEnum):
    """What counts requests; the value is stored for ever."""

    NGINX = "ingress_nginx"
    ISTIO = "istio"
    PROGRAM = "program"

    @property
    def label(self) -> str:
        """What people call it."""
        return METRICS[self].label

    @property
    def line(self) -> str:
        """What it counts, in a few words."""
        return METRICS[self].line


@dataclass(frozen=True, slots=True)
class Metrics:
    """Names of metrics and labels, and what tells that a request failed; a second has `per_second` of its units."""

    label: str
    line: str
    counter: str
    histogram: str
    # Labels that together name a Service; the first of each that a sample has counts.
    namespace: tuple[str, ...]
    service: tuple[str, ...]
    failed: str
    also: str = ""
    per_second: int = 1


METRICS: Mapping[Meter, Metrics] = {
    Meter.NGINX: Metrics(
        "ingress-nginx",
        "requests from outside, as its ingress passes them on",
        "nginx_ingress_controller_requests",
        "nginx_ingress_controller_request_duration_seconds_bucket",
        # Without `honorLabels` the controller's own stand in the plain ones.
        ("exported_namespace", "namespace"),
        ("exported_service", "service"),
        'status=~"5.."',
    ),
    Meter.ISTIO: Metrics(
        "Istio",
        "requests through the mesh, as the service's own side sees them",
        "istio_requests_total",
        "istio_request_duration_milliseconds_bucket",
        ("destination_service_namespace",),
        ("destination_service_name",),
        'response_code=~"5.."',
        'reporter=~"destination|waypoint"',
        per_second=1_000,
    ),
    Meter.PROGRAM: Metrics(
        "The program itself",
        "http_requests_total, as vLLM and FastAPI serve it; what never reached it is not counted",
        "http_requests_total",
        "http_request_duration_seconds_bucket",
        # Whom Prometheus asked; `exported_…` is what the program says of itself, which may be another team's name.
        ("namespace",),
        ("service",),
        'status=~"5.*"',
    ),
}
CHOICES = [(meter.value, meter.label) for meter in Meter]
Service = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Counted:
    """How many requests a service had and how many of them failed; the seconds within which 99 of 100 were answered.

    `p99` is None where too few were answered. Where `is_beyond`, it is the end of the histogram's last bucket, and so
    many took longer that nobody knows how long.
    """

    requests: float = 0.0
    failed: float = 0.0
    p99: float | None = None
    is_beyond: bool = False


def query(meter: Meter, begins: datetime, ends: datetime) -> str:
    """What Prometheus is asked of every service that a meter counts, from one moment to another.

    All in one call; the label `of` says what a sample is of. The moments stand in the query, so that a call that comes
    late, or again, has the same answer.
    """
    metrics, at = METRICS[meter], int(ends.timestamp())
    by = ", ".join((*metrics.namespace, *metrics.service))
    span = f"{at - int(begins.timestamp())}s"

    def increase(metric: str, *only: str, within: str = span) -> str:
        chosen = ", ".join(filter(None, (metrics.also, *only)))
        return f"increase({metric}{{{chosen}}}[{within}] @ {at})"

    def of_an_hour(*only: str) -> str:
        return increase(metrics.histogram, *only, within=f"{LATENCY_SECONDS}s")

    below = f"sum by (le, {by}) ({of_an_hour(ENDING)})"
    parts = {
        REQUESTS: f"sum by ({by}) ({increase(metrics.counter)})",
        FAILED: f"sum by ({by}) ({increase(metrics.counter, metrics.failed)})",
        P99: f"histogram_quantile(0.99, sum by (le, {by}) ({of_an_hour()})) / {metrics.per_second}",
        HOUR: f"sum by ({by}) ({of_an_hour(ALL)})",
        # Buckets add up, so that the largest is the last one that has an end.
        REACHED: f"max by ({by}) ({below})",
    }
    return " or ".join(
        f'label_replace({asked}, "of", "{name}", "", "")'
        for name, asked in parts.items()
    )


def counted(
    meter: Meter, samples: Iterable[Mapping[str, Any]]
) -> dict[Service, Counted]:
    """What was counted of each service, by namespace and name; what a sample tells that is no number is left out.

    Several that count one service, as two ingress controllers do, are added up; of their latencies the worst counts.
    """
    metrics = METRICS[meter]
    found: dict[Service, dict[str, float]] = defaultdict(dict)
    for one in samples:
        labels = one.get("metric")
        if not isinstance(labels, Mapping):
            continue
        service = _first(labels, metrics.namespace), _first(labels, metrics.service)
        value = _number(one.get("value"))
        if all(service) and value is not None:
            of, part = found[service], str(labels.get("of", ""))
            of[part] = (
                max(of.get(part, 0.0), value)
                if part == P99
                else of.get(part, 0.0) + value
            )
    return {service: _of(one) for service, one in found.items() if REQUESTS in one}


def _of(found: Mapping[str, float]) -> Counted:
    requests, hour = found[REQUESTS], found.get(HOUR, 0.0)
    return Counted(
        requests=requests,
        failed=min(found.get(FAILED, 0.0), requests),
        p99=found.get(P99) if hour >= ENOUGH else None,
        is_beyond=found.get(REACHED, 0.0) < 0.99 * hour,
    )


def _first(labels: Mapping[str, Any], names: Iterable[str]) -> str:
    return next((str(labels[name]) for name in names if labels.get(name)), "")


def _number(value: Any) -> float | None:
    try:
        number = float(value[1])
    except (IndexError, KeyError, TypeError, ValueError):
        return None
    return max(number, 0.0) if isfinite(number) and number < BELIEVED else None
