"""Which folders hold the product's Python."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYERS = [
    "portal",
    "checks",
    "workloads",
    "offboarding",
    "onboarding",
    "approvals",
    "catalogue",
    "policy",
    "allocations",
    "provisioning",
    "fleet",
    "notices",
    "accounts",
    "web",
    "ui",
]
PRODUCT = [*LAYERS, "connectors", "audit"]
PACKAGES = [*PRODUCT, "sandbox"]
