"""The dashboard of a tenancy: Grafana's, about one namespace, with metrics that exist."""

import json
import re

from provisioning.desired.manifests import Manifest, labels, tenancy_objects
from tests.provisioning.specs import SAMPLE, sample

NAMESPACE = SAMPLE.namespace


def dashboard() -> Manifest:
    """The ConfigMap that Grafana finds."""
    [config] = [m for m in tenancy_objects(SAMPLE) if m["kind"] == "ConfigMap"]
    return config


def test_the_dashboard_is_grafanas_and_about_this_space_alone() -> None:
    config = dashboard()
    assert config["metadata"]["labels"] == labels(SAMPLE) | {"grafana_dashboard": "1"}
    [(file, text)] = config["data"].items()
    assert file == f"{NAMESPACE}.json"
    document = json.loads(text)
    assert document["title"] == "GPUs of vision / detection"
    assert len(document["uid"]) <= 40
    panels = document["panels"]
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len(places)
    assert {panel["datasource"]["uid"] for panel in panels} == {"${datasource}"}
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    assert all(
        set(re.findall(r'"(qm-[^"]*)"', query)) == {NAMESPACE} for query in queries
    )
    assert all(
        query.count("(") == query.count(")") and query.count("{") == query.count("}")
        for query in queries
    )


METRICS = {
    # kube-state-metrics
    "kube_pod_container_resource_requests",
    "kube_resourcequota",
    # dcgm-exporter, default-counters.csv
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    # Kueue; of a histogram only _bucket, _sum and _count exist
    "kueue_pending_workloads",
    "kueue_admitted_active_workloads",
    "kueue_admission_wait_time_seconds_bucket",
    "kueue_evicted_workloads_total",
}


def test_every_query_asks_for_metrics_that_exist_by_their_names() -> None:
    text = dashboard()["data"][f"{NAMESPACE}.json"]
    assert set(re.findall(r"(?:kube|kueue|DCGM)_\w+", text)) == METRICS
    assert "nvidia_com_" in text
    assert 'resource=\\"nvidia.com' not in text


def test_a_cluster_without_grafana_gets_no_dashboard() -> None:
    assert "ConfigMap" not in {
        m["kind"] for m in tenancy_objects(sample(dashboards=False))
    }
