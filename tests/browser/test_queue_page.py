"""A cluster's queue in a real browser: light and dark, on a desk and on a phone."""

import pytest
from django.utils import timezone

from tests import factories
from tests.browser.conftest import LOOKS, Open, arrives, overflow, violations
from tests.workloads.test_queueing import HIGH, NEW, OLD, workload
from workloads.models import ClusterObject, Feed
from workloads.watching.kept import KINDS

pytestmark = pytest.mark.slow

LONG = "retrain-the-whole-of-the-yearly-forecast-with-every-station-2026"


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_who_runs_and_who_waits_is_readable_everywhere(
    transactional_db: None, open_page: Open, size: str, theme: str
) -> None:
    ada, now = factories.person("Ada Okafor"), timezone.now()
    cluster = factories.cluster("training")
    factories.flavor(cluster, "a100", node_labels={"accelerator": "nvidia-a100"})
    for name in ("Vision", "Speech"):
        team = factories.team(name, by=ada)
        place = factories.tenancy(team, cluster)
        if name == "Vision":
            factories.join(team, ada)
        for one in (OLD, NEW, HIGH, workload(LONG, 8)):
            held = one["status"].get("admission", {}) | {
                "clusterQueue": place.namespace
            }
            status = one["status"] | {"admission": held}
            meta = one["metadata"] | {
                "namespace": place.namespace,
                "uid": f"{name}-{one['metadata']['name']}",
            }
            ClusterObject.objects.create(
                cluster=cluster,
                kind="Workload",
                namespace=place.namespace,
                name=meta["name"],
                body=one | {"metadata": meta, "status": status},
            )
    for kind in KINDS:
        Feed.objects.create(cluster=cluster, kind=kind, listed_at=now, heard_at=now)
    page = open_page(ada, "/clusters/training/queue", size=size, theme=theme)
    arrives(page, "Queue")
    for text in ("Vision", LONG, "Waits, number 1", "Other teams: 6 GPUs in use"):
        assert text in page.locator("main").inner_text()
    assert violations(page) == []
    assert overflow(page) == 0
