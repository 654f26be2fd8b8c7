"""Which folders hold the product's Python."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYERS = [
    "portal",
    "checks",
    "insights",
    "workloads",
    "offboarding",
    "onboarding",
    "approvals",
    "catalogue",
    "policy",
    "allocations",
    "manual",
    "notebooks",
    "capacity",
    "provisioning",
    "fleet",
    "notices",
    "accounts",
    "web",
    "ui",
    "reconciling",
]
PRODUCT = [*LAYERS, "connectors", "audit"]
# The client is installed by itself, on the machines of those who use it.
CLIENT = "qm"
PACKAGES = [*PRODUCT, "sandbox", CLIENT]
