"""Requests that services answer, as what counts them tells Prometheus: ingress-nginx, Istio, or the program. Pure.

Of a query it reads which metric is counted, over how many seconds each part of it is, and the label `of` that names
the part: all requests, those with a status of 5xx, the latency of 99 of 100, or how many the buckets of the histogram
count. It is the same at any time.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from sandbox.kubernetes.status import bad_request

SHAPE = (
    "give {namespace, service, meter, per_second, failed, p99}: names, ingress_nginx, istio or program, requests a "
    "second, the share that fails, seconds; and, if its histogram ends somewhere, last_bucket in seconds"
)
METRICS: Mapping[str, str] = {
    "nginx_ingress_controller_requests": "ingress_nginx",
    "istio_requests_total": "istio",
    "http_requests_total": "program",
}
LABELS: Mapping[str, tuple[str, str]] = {
    "ingress_nginx": ("exported_namespace", "exported_service"),
    "istio": ("destination_service_namespace", "destination_service_name"),
    "program": ("namespace", "service"),
}
PART = re.compile(
    r'label_replace\((?P<asked>(?:sum|max|histogram_quantile).*?), "of", "(?P<of>\w+)", "", ""\)'
)
SPAN = re.compile(r"\[(\d+)s\] @ (\d+)\)")


@dataclass(frozen=True)
class Traffic:
    """What a service answers: so many requests a second, of which a share fails; 99 of 100 within `p99` seconds.

    Its histogram knows of no more seconds than `last_bucket`.
    """

    namespace: str
    service: str
    meter: str
    per_second: float
    failed: float
    p99: float
    last_bucket: float = inf


def traffic_of(spec: Mapping[str, object]) -> Traffic:
    """What a call to the switch says; raises Refusal (400)."""
    try:
        per_second, failed, p99 = (
            float(str(spec[name])) for name in ("per_second", "failed", "p99")
        )
        one = Traffic(
            str(spec["namespace"]),
            str(spec["service"]),
            str(spec["meter"]),
            per_second=per_second,
            failed=failed,
            p99=p99,
            last_bucket=float(str(spec.get("last_bucket", inf))),
        )
    except (KeyError, ValueError) as error:
        raise bad_request(SHAPE) from error
    if one.meter not in LABELS:
        raise bad_request(SHAPE)
    return one


def samples(
    traffic: Mapping[tuple[str, str], Traffic], query: str
) -> list[dict[str, Any]] | None:
    """The answer to a query about requests; None for one about something else."""
    meter = next((METRICS[one] for one in METRICS if one in query), None)
    if meter is None:
        return None
    told = [one for one in traffic.values() if one.meter == meter]
    return [sample for one in told for sample in _samples(one, query)]


def _samples(one: Traffic, query: str) -> Iterator[dict[str, Any]]:
    namespace, service = LABELS[one.meter]
    for part in PART.finditer(query):
        span = SPAN.search(part["asked"])
        if span is None:
            continue
        seconds, at = float(span[1]), float(span[2])
        value = one.per_second * seconds
        if part["asked"].startswith("histogram_quantile"):
            if not one.per_second:
                continue
            value = min(one.p99, one.last_bucket)
        elif part["asked"].startswith("max") and one.p99 > one.last_bucket:
            value *= 0.95
        elif '"5' in part["asked"]:
            value *= one.failed
        yield {
            "metric": {
                namespace: one.namespace,
                service: one.service,
                "of": part["of"],
            },
            "value": [at, str(value)],
        }
