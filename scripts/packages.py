"""Which folders hold the product's Python."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ["portal", "onboarding", "approvals", "allocations", "provisioning", "fleet", "notices", "accounts"]
PRODUCT = [*LAYERS, "connectors", "audit"]
PACKAGES = [*PRODUCT, "sandbox"]


def python_files(*folders: str) -> list[Path]:
    """The Python files git knows or would add under `folders`, without generated migrations."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *folders]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    paths = [ROOT / line for line in listed if line.endswith(".py") and "/migrations/" not in line]
    return [path for path in paths if path.exists()]
