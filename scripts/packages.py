"""Which folders hold the product's Python."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ["portal", "onboarding", "approvals", "allocations", "provisioning", "fleet", "notices", "accounts"]
PRODUCT = [*LAYERS, "connectors", "audit"]
PACKAGES = [*PRODUCT, "sandbox"]
