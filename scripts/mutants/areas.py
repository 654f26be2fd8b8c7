"""The modules of the pure core whose tests are measured, and which tests are their own."""

from collections.abc import Mapping, Sequence

PROVISIONING, POLICY = "tests/provisioning/", "tests/policy/"
DRIFT = [PROVISIONING + each for each in ("test_plan.py", "test_drift.py", "test_defaults.py")]
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
    )
]
SPEC = [PROVISIONING + "test_spec.py", PROVISIONING + "test_manifests_hostile.py"]
OFFERINGS = ["tests/catalogue/test_offerings.py"]
RULES = [POLICY + "test_rules.py", POLICY + "test_evaluation.py"]

OWN_TESTS: Mapping[str, Sequence[str]] = {
    "provisioning/desired/plan.py": [PROVISIONING + "test_plan.py"],
    "provisioning/drift/defaults.py": DRIFT,
    "provisioning/drift/comparing.py": DRIFT,
    "provisioning/drift/paths.py": DRIFT,
    "allocations/budgets/money.py": ["tests/allocations/test_money.py"],
    "allocations/schedule.py": ["tests/allocations/test_schedule.py"],
    "provisioning/desired/naming.py": [PROVISIONING + "test_naming.py"],
    "provisioning/desired/spec.py": SPEC,
    "provisioning/desired/manifests.py": MANIFESTS,
    "provisioning/desired/limits.py": MANIFESTS,
    "provisioning/desired/network.py": MANIFESTS,
    "provisioning/desired/objects.py": MANIFESTS,
    "provisioning/desired/queues.py": MANIFESTS,
    "provisioning/desired/rights.py": MANIFESTS,
    "provisioning/desired/volumes.py": MANIFESTS,
    "provisioning/desired/quantities.py": MANIFESTS,
    "policy/rules.py": RULES,
    "policy/evaluation.py": RULES,
    "policy/document.py": [POLICY + "test_document.py"],
    "policy/differences.py": [POLICY + "test_differences.py"],
    "policy/remedies.py": [POLICY + "test_remedies.py"],
    "policy/route_size.py": [POLICY + "test_route_size.py", POLICY + "test_evaluation.py"],
}
