"""Families in the text format of Prometheus: the only importer of its client library."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from portal.metrics.families import Family

# Every Prometheus reads it; the names of metrics and labels here need nothing newer.
CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4


# Registries tell collectors apart by which they are.
@dataclass(frozen=True, eq=False)
class _Collected(Collector):
    """Families that were computed for one scrape: web processes keep no numbers of their own."""

    families: Iterable[Family]

    def collect(self) -> Iterator[Metric]:
        """The families as the library knows them."""
        return map(_metric_of, self.families)


def text_of(families: Iterable[Family]) -> bytes:
    """The answer to a scrape."""
    # A registry of its own: the library's has the memory and the threads of whichever process answers.
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(families))
    return generate_latest(registry)


def _metric_of(family: Family) -> Metric:
    kind = CounterMetricFamily if family.is_counter else GaugeMetricFamily
    metric = kind(family.name, family.words, labels=family.labels)
    for labels, value in family.samples.items():
        metric.add_metric(labels, value)
    return metric
