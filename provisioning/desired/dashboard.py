"""The team's Grafana dashboard: a ConfigMap that Grafana's sidecar picks up, about this one namespace. Pure."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from provisioning.desired.objects import Manifest, placed
from provisioning.desired.spec import TenancySpec

NAME = "quartermaster-dashboard"
WIDTH, HEIGHT = 12, 8
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


def dashboard(spec: TenancySpec) -> Manifest:
    """The ConfigMap; its only file is named after the namespace, because Grafana keeps all of them in one folder."""
    return placed(
        spec,
        "v1",
        "ConfigMap",
        NAME,
        extra={"grafana_dashboard": "1"},
        data={
            f"{spec.namespace}.json": json.dumps(
                document(spec), separators=(",", ":"), sort_keys=True
            )
        },
    )


def document(spec: TenancySpec) -> dict[str, Any]:
    """The dashboard as Grafana reads it; every query names the tenancy's namespace or queue, and no variable."""
    return {
        "uid": "qm-" + hashlib.sha256(spec.namespace.encode()).hexdigest()[:20],
        "title": f"GPUs of {spec.team} / {spec.project}",
        "tags": ["quartermaster", spec.team],
        "schemaVersion": 39,
        "editable": False,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Prometheus",
                    "type": "datasource",
                    "query": "prometheus",
                }
            ]
        },
        "panels": [
            _panel(index, *rest)
            for index, rest in enumerate(
                [
                    *_of_pods(spec.namespace),
                    *(_of_volcano if spec.has_volcano else _of_kueue)(spec.namespace),
                ]
            )
        ],
    }


OF_PODS = (
    ("GPU utilization", "percent", "avg", "DCGM_FI_DEV_GPU_UTIL"),
    (
        "GPU engine active (MIG too)",
        "percentunit",
        "avg",
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    ),
    ("GPU memory used", "decmbytes", "sum", "DCGM_FI_DEV_FB_USED"),
)


# Title, unit, and (query, legend) pairs.
Panels = list[tuple[str, str, Sequence[tuple[str, str]]]]


def _of_pods(space: str) -> Panels:
    """What pods ask for and do. kube-state-metrics writes `nvidia.com/gpu` as `nvidia_com_gpu`."""
    pods = f'namespace="{space}"'
    gpu = f'{pods},resource=~"nvidia_com_.+"'
    ceiling = f'{pods},resource=~"requests.nvidia.com/.+"'
    return [
        (
            "GPUs asked for by pods, and the ceiling",
            "short",
            [
                (
                    f"sum by (resource) (kube_pod_container_resource_requests{{{gpu}}})",
                    "asked: {{resource}}",
                ),
                (
                    f'sum by (resource) (kube_resourcequota{{{ceiling},type="hard"}})',
                    "ceiling: {{resource}}",
                ),
            ],
        ),
        *(
            (title, unit, [(f"{sums} by (pod) ({_dcgm(metric, space)})", "{{pod}}")])
            for title, unit, sums, metric in OF_PODS
        ),
    ]


def _of_volcano(space: str) -> Panels:
    """The queue as Volcano counts it: its scheduler writes GPUs in thousandths."""
    queue = f'queue_name="{space}"'
    gpus = f'{queue},resource=~"nvidia.com/.+"'
    return [
        (
            "Jobs in line, and running",
            "short",
            [
                (f"sum(volcano_queue_pod_group_pending_count{{{queue}}})", "in line"),
                (f"sum(volcano_queue_pod_group_running_count{{{queue}}})", "running"),
            ],
        ),
        (
            "GPUs of the queue in use, and its own",
            "short",
            [
                (
                    f"sum by (resource) (volcano_queue_allocated_scalar_resources{{{gpus}}}) / 1000",
                    "in use: {{resource}}",
                ),
                (
                    f"sum by (resource) (volcano_queue_deserved_scalar_resources{{{gpus}}}) / 1000",
                    "its own: {{resource}}",
                ),
            ],
        ),
    ]


def _of_kueue(space: str) -> Panels:
    """The queue as Kueue counts it."""
    queue = f'cluster_queue="{space}"'
    waits = f"rate(kueue_admission_wait_time_seconds_bucket{{{queue}}}[1h])"
    return [
        (
            "Jobs in line, and running",
            "short",
            [
                (
                    f"sum by (status) (kueue_pending_workloads{{{queue}}})",
                    "in line: {{status}}",
                ),
                (f"sum(kueue_admitted_active_workloads{{{queue}}})", "running"),
            ],
        ),
        (
            "Time in line, 95 of 100 jobs",
            "s",
            [(f"histogram_quantile(0.95, sum by (le) ({waits}))", "95th percentile")],
        ),
        (
            "Jobs put back in line",
            "short",
            [
                (
                    f"sum by (reason) (increase(kueue_evicted_workloads_total{{{queue}}}[1h]))",
                    "{{reason}}",
                )
            ],
        ),
    ]


def _dcgm(metric: str, space: str) -> str:
    """A metric of the DCGM exporter by namespace and pod.

    Scraped without `honorLabels` the pod's labels are called `exported_…`, and `namespace` is the exporter's own.
    """
    renamed = f'{metric}{{exported_namespace="{space}"}}'
    return f'{metric}{{namespace="{space}"}} or label_replace({renamed},"pod","$1","exported_pod","(.*)")'


def _panel(
    index: int, title: str, unit: str, queries: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    return {
        "id": index + 1,
        "type": "timeseries",
        "title": title,
        "datasource": DATASOURCE,
        "fieldConfig": {"defaults": {"unit": unit, "min": 0}},
        "gridPos": {
            "x": index % 2 * WIDTH,
            "y": index // 2 * HEIGHT,
            "w": WIDTH,
            "h": HEIGHT,
        },
        "targets": [
            {"expr": query, "legendFormat": legend, "refId": "AB"[number]}
            for number, (query, legend) in enumerate(queries)
        ],
    }
