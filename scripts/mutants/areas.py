"""The modules of the pure core whose tests are measured, and which tests are their own."""

from collections.abc import Mapping, Sequence

PROVISIONING, POLICY = "tests/provisioning/", "tests/policy/"
NOTEBOOKS, WORKLOADS = "tests/notebooks/", "tests/workloads/"
DRIFT = [
    PROVISIONING + each
    for each in ("test_plan.py", "test_drift.py", "test_defaults.py")
]
MANIFESTS = [
    PROVISIONING + each
    for each in (
        "test_manifests.py",
        "test_manifest_rules.py",
        "test_manifests_hostile.py",
        "test_rights.py",
        "test_volumes.py",
        "test_priorities.py",
        "test_quantities.py",
        "test_volcano_queues.py",
    )
]
SPEC = [
    PROVISIONING + each
    for each in ("test_spec.py", "test_manifests_hostile.py", "test_volcano_queues.py")
]
RULES = [
    POLICY + "test_rules.py",
    POLICY + "test_evaluation.py",
    "tests/approvals/test_later.py",
]
# What a run is made of is tested by templates, and by what the documents say of them.
RUNS = [
    WORKLOADS + each
    for each in (
        "test_templates.py",
        "test_template_documents.py",
        "test_template_parameters.py",
        "test_topology.py",
        "test_run_variables.py",
    )
]

OWN_TESTS: Mapping[str, Sequence[str]] = {
    "provisioning/desired/plan.py": [PROVISIONING + "test_plan.py"],
    "provisioning/drift/defaults.py": DRIFT,
    "provisioning/drift/comparing.py": DRIFT,
    "provisioning/drift/paths.py": DRIFT,
    "allocations/budgets/money.py": ["tests/allocations/test_money.py"],
    "fleet/prices.py": ["tests/fleet/test_prices.py"],
    "fleet/versions/comparing.py": ["tests/fleet/versions/test_comparing.py"],
    "fleet/versions/reading.py": ["tests/fleet/versions/test_reading.py"],
    "allocations/schedule.py": ["tests/allocations/test_schedule.py"],
    "provisioning/desired/naming.py": [PROVISIONING + "test_naming.py"],
    "provisioning/desired/spec.py": SPEC,
    "provisioning/desired/manifests.py": MANIFESTS,
    "provisioning/desired/limits.py": MANIFESTS,
    "provisioning/desired/network.py": MANIFESTS,
    "provisioning/desired/objects.py": MANIFESTS,
    "provisioning/desired/queues.py": MANIFESTS,
    "provisioning/desired/variables.py": [PROVISIONING + "test_variables.py"],
    "provisioning/desired/volcano.py": [PROVISIONING + "test_volcano_queues.py"],
    "provisioning/desired/kueue_form.py": [PROVISIONING + "test_kueue_form.py"],
    "provisioning/desired/rights.py": MANIFESTS,
    "provisioning/desired/volumes.py": MANIFESTS,
    "provisioning/desired/quantities.py": MANIFESTS,
    "policy/rules.py": RULES,
    "policy/evaluation.py": RULES,
    "policy/document.py": [POLICY + "test_document.py"],
    "policy/differences.py": [POLICY + "test_differences.py"],
    "policy/remedies.py": [POLICY + "test_remedies.py"],
    "policy/route_size.py": [
        POLICY + "test_route_size.py",
        POLICY + "test_evaluation.py",
    ],
    "notebooks/profiles/devcontainers.py": [NOTEBOOKS + "test_devcontainers.py"],
    "notebooks/profiles/document.py": [NOTEBOOKS + "test_profile_documents.py"],
    "notebooks/profiles/kubespawner.py": [NOTEBOOKS + "test_kubespawner.py"],
    "notebooks/profiles/patterns.py": [NOTEBOOKS + "test_patterns.py"],
    "notebooks/profiles/pricing.py": [NOTEBOOKS + "test_profile_documents.py"],
    "notebooks/profiles/publishing.py": [NOTEBOOKS + "test_publishing.py"],
    "notebooks/profiles/spawning.py": [NOTEBOOKS + "test_spawning.py"],
    "workloads/economics.py": [WORKLOADS + "test_economics.py"],
    "workloads/estimating.py": [WORKLOADS + "test_estimating.py"],
    "workloads/queueing.py": [WORKLOADS + "test_queueing.py"],
    "workloads/gpu_use/busy.py": [WORKLOADS + "test_gpu_use.py"],
    "workloads/gpu_use/overall.py": [WORKLOADS + "test_gpu_use_overall.py"],
    "workloads/gpu_use/shares.py": [
        WORKLOADS + "test_gpu_use.py",
        WORKLOADS + "test_gpu_use_overall.py",
    ],
    "workloads/runs/planning/lending.py": [WORKLOADS + "test_lending.py"],
    "workloads/runs/planning/plan.py": RUNS,
    "workloads/runs/planning/pools.py": [
        WORKLOADS + "test_gpu_memory.py",
        WORKLOADS + "test_template_documents.py",
    ],
    "workloads/runs/planning/right_size.py": [WORKLOADS + "test_next_size.py"],
    "workloads/runs/planning/resuming.py": [WORKLOADS + "test_resuming.py"],
    "workloads/runs/planning/spot.py": [WORKLOADS + "test_spot.py"],
}
