"""The import contracts hold on the tree, and each of them catches what it forbids."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.packages import PACKAGES, ROOT

LAYERS = "Imports follow the data"
PRODUCT = "The product imports nothing of the sandbox"
SANDBOX = "The sandbox imports nothing of the product"
PURE = "Pure modules and connectors know no framework"
SDKS = "Each outside SDK has one importer"
PLANTED = [
    pytest.param("fleet/models.py", "import approvals", LAYERS, id="upstream"),
    pytest.param("accounts/models.py", "from fleet import models", LAYERS, id="upstream-by-one"),
    pytest.param("audit/chain.py", "import accounts", LAYERS, id="audit-knows-a-layer"),
    pytest.param("connectors/errors.py", "import audit", LAYERS, id="connector-knows-audit"),
    pytest.param("connectors/errors.py", "import provisioning", LAYERS, id="connector-knows-a-layer"),
    pytest.param("portal/urls.py", "import sandbox", PRODUCT, id="product-knows-sandbox"),
    pytest.param("sandbox/world.py", "import provisioning", SANDBOX, id="sandbox-knows-product"),
    pytest.param("provisioning/plan.py", "import django", PURE, id="pure-module-imports-django"),
    pytest.param("provisioning/naming.py", "from provisioning import models", PURE, id="by-way-of-models"),
    pytest.param("approvals/policy.py", "from django.db import models", PURE, id="policy-imports-django"),
    pytest.param(
        "approvals/document.py", "from approvals import models", PURE, id="document-by-way-of-models"
    ),
    pytest.param("approvals/rules.py", "import rest_framework", PURE, id="rules-import-rest-framework"),
    pytest.param(
        "approvals/catalogue.py", "from django.conf import settings", PURE, id="catalogue-imports-django"
    ),
    pytest.param(
        "notices/rendering.py", "from django.utils import html", PURE, id="rendering-imports-django"
    ),
    pytest.param("notices/models.py", "from fleet import models", LAYERS, id="notices-know-a-layer"),
    pytest.param("notices/tasks.py", "import smtplib", SDKS, id="smtplib-elsewhere"),
    pytest.param("connectors/errors.py", "import celery", PURE, id="connector-imports-celery"),
    pytest.param("provisioning/plan.py", "import kubernetes", SDKS, id="kubernetes-elsewhere"),
    pytest.param("connectors/errors.py", "import msal", SDKS, id="msal-elsewhere"),
    pytest.param("connectors/graph.py", "import jwt", SDKS, id="jwt-elsewhere"),
    pytest.param("accounts/models.py", "import requests", SDKS, id="requests-elsewhere"),
]


def lint_imports(tree: Path) -> tuple[int, str]:
    """The exit code and the words of lint-imports on a tree."""
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-logo", "--no-cache"]
    # The tree's own packages, not those that the environment puts on the path.
    done = subprocess.run(
        command, cwd=tree, check=False, capture_output=True, text=True, env={"PYTHONPATH": str(tree)}
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the product's packages that a test may spoil."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_tree_keeps_every_contract() -> None:
    code, words = lint_imports(ROOT)
    assert code == 0, words


@pytest.mark.parametrize(("file", "line", "contract"), PLANTED)
def test_a_planted_violation_is_caught(tree: Path, file: str, line: str, contract: str) -> None:
    with (tree / file).open("a") as source:
        source.write(f"\n{line}\n")
    code, words = lint_imports(tree)
    assert code == 1, words
    assert re.search(rf"{contract}.* BROKEN", words), words


def test_every_top_level_package_is_under_contract() -> None:
    found = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert found - {"tests", "scripts"} == set(PACKAGES)


def test_locked_rows_can_still_be_referred_to() -> None:
    """Foreign keys are checked at commit, when the audit chain is held: a lock they wait for would be a deadlock."""
    locks = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        for line in path.read_text().splitlines()
        if "select_for_update(" in line
    ]
    assert len(locks) > 10
    assert [lock for lock in locks if "no_key=True" not in lock] == []


def test_no_migration_takes_its_lists_from_the_running_code() -> None:
    """What it read would change with the code, so that `makemigrations` misses what an upgraded database needs."""
    lists = re.compile(
        r"^from [a-z_.]+\.(events|kinds|roles|states|catalogue|stages|document) import", re.MULTILINE
    )
    found = [
        path.relative_to(ROOT) for path in ROOT.glob("*/migrations/*.py") if lists.search(path.read_text())
    ]
    assert found == []
