"""The import contracts hold on the tree, and each of them catches what it forbids."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib import metadata
from pathlib import Path

import pytest
from django.apps import apps

from scripts.packages import PACKAGES, ROOT

LAYERS = "Imports follow the data"
PRODUCT = "The product imports nothing of the sandbox"
SANDBOX = "The sandbox imports nothing of the product"
CLIENT = "The client knows the API alone"
PURE = "Pure modules and connectors know no framework"
ENGINE = "The engine knows no outside system"
SDKS = "Each outside SDK has one importer"
PLANTED = [
    ("fleet/models.py", "import approvals", LAYERS),
    ("accounts/models.py", "from fleet import models", LAYERS),
    ("audit/chain.py", "import accounts", LAYERS),
    ("connectors/errors.py", "import audit", LAYERS),
    ("connectors/errors.py", "import provisioning", LAYERS),
    ("reconciling/claims.py", "from fleet import models", LAYERS),
    ("reconciling/claims.py", "from connectors import kubernetes", ENGINE),
    ("reconciling/conditions.py", "import django", PURE),
    ("portal/urls.py", "import sandbox", PRODUCT),
    ("portal/urls.py", "import qm", PRODUCT),
    ("sandbox/world.py", "import provisioning", SANDBOX),
    ("qm/calls.py", "from accounts import models", CLIENT),
    ("qm/words.py", "import sandbox", CLIENT),
    ("qm/commands/runs.py", "import django", CLIENT),
    ("provisioning/desired/plan.py", "import django", PURE),
    ("provisioning/desired/naming.py", "from provisioning import models", PURE),
    ("policy/evaluation.py", "from django.db import models", PURE),
    ("policy/document.py", "from approvals import models", PURE),
    ("policy/rules.py", "import rest_framework", PURE),
    ("catalogue/offerings.py", "from django.conf import settings", PURE),
    ("notices/rendering.py", "from django.utils import html", PURE),
    ("notices/models.py", "from fleet import models", LAYERS),
    ("notices/tasks.py", "import smtplib", SDKS),
    ("connectors/errors.py", "import celery", PURE),
    ("provisioning/desired/plan.py", "import kubernetes", SDKS),
    ("connectors/errors.py", "import msal", SDKS),
    ("connectors/graph.py", "import jwt", SDKS),
    ("accounts/models.py", "import requests", SDKS),
    ("fleet/models.py", "import azure", SDKS),
    ("connectors/errors.py", "import azure", SDKS),
    ("connectors/azure/ids.py", "import requests", SDKS),
    ("reconciling/claims.py", "from connectors.azure import compute", ENGINE),
]
# Microsoft's libraries are one namespace to lint-imports: who imports which.
AZURE = {
    "azure.core": "pipeline",
    "azure.identity": "pipeline",
    "azure.mgmt.core": "pipeline",
    "azure.mgmt.authorization": "authorization",
    "azure.mgmt.cognitiveservices": "cognitive_services",
    "azure.mgmt.compute": "compute",
    "azure.mgmt.containerregistry": "container_registry",
    "azure.mgmt.containerservice": "container_service",
    "azure.mgmt.quota": "quota",
}


def lint_imports(tree: Path) -> tuple[int, str]:
    """The exit code and the words of lint-imports on a tree."""
    command = [
        str(Path(sys.executable).parent / "lint-imports"),
        "--no-logo",
        "--no-cache",
    ]
    # The tree's own packages, not those that the environment puts on the path.
    done = subprocess.run(
        command,
        cwd=tree,
        check=False,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tree)},
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the product's packages that a test may spoil."""
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package,
            tmp_path / package,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_tree_keeps_every_contract() -> None:
    code, words = lint_imports(ROOT)
    assert code == 0, words


@pytest.mark.slow
def test_every_planted_violation_is_caught(tree: Path) -> None:
    """All at once: each has to stand in the report of the contract that it breaks, as the import that it is."""
    for file, line, _ in PLANTED:
        with (tree / file).open("a") as source:
            source.write(f"\n{line}\n")
    code, words = lint_imports(tree)
    assert code == 1, words
    reports = dict(
        re.findall(
            r"^(\S[^\n]*)\n-{3,}\n(.*?)(?=^\S[^\n]*\n-{3,}\n|\Z)",
            words,
            re.DOTALL | re.MULTILINE,
        )
    )
    missed = [
        (file, line)
        for file, line, contract in PLANTED
        if not any(
            name.startswith(contract) and edge(file, line) in said
            for name, said in reports.items()
        )
    ]
    assert missed == [], words


def edge(file: str, line: str) -> str:
    """An import as lint-imports reports it: "fleet.models -> approvals"."""
    found = re.fullmatch(r"(?:from (\S+) )?import (\S+)", line)
    assert found is not None
    package, name = found.groups()
    outside = package is not None and package.partition(".")[0] not in PACKAGES
    imported = (
        name
        if package is None
        else package.partition(".")[0]
        if outside
        else f"{package}.{name}"
    )
    return f"{file.removesuffix('.py').replace('/', '.')} -> {imported}"


def test_each_library_of_azures_has_one_importer() -> None:
    found = {
        (
            ".".join(name.split(".")[: 3 if name.startswith("azure.mgmt") else 2]),
            path.stem,
        )
        for path in (ROOT / "connectors").rglob("*.py")
        for name in imported(path)
        if name.partition(".")[0] == "azure"
    }
    assert found == set(AZURE.items())


def imported(path: Path) -> Iterator[str]:
    """The modules that a file imports, inside its functions, too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from azure.mgmt import compute` names the library in the second part.
            yield from (f"{node.module}.{each.name}" for each in node.names)


def files_with(words: str, package: str) -> Iterator[tuple[Path, str]]:
    """The files of a package that hold these words: to parse all of them takes seconds."""
    for path in (ROOT / package).rglob("*.py"):
        text = path.read_text()
        if words in text:
            yield path, text


def test_whatever_calls_itself_pure_is_under_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"][
        "importlinter"
    ]["contracts"]
    pure = next(each["source_modules"] for each in contracts if each["id"] == "pure")
    found = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for package in PACKAGES
        if package not in ("sandbox", "connectors")
        for path, text in files_with("Pure", package)
        if re.search(r"\bPure\b", ast.get_docstring(ast.parse(text)) or "")
    ]
    assert len(found) > 40
    assert [
        module
        for module in found
        if not any(fnmatch(module, pattern) for pattern in pure)
    ] == []


def test_every_top_level_package_is_under_contract() -> None:
    found = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert found - {"tests", "scripts"} == set(PACKAGES)


def test_locked_rows_can_still_be_referred_to() -> None:
    """Foreign keys are checked at commit, when the audit chain is held: a lock they wait for would be a deadlock."""
    locks = {
        f"{path.relative_to(ROOT)}:{call.lineno}": ast.unparse(call)
        for package in PACKAGES
        for path, text in files_with("select_for_update", package)
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "select_for_update"
    }
    assert len(locks) > 10
    without = [where for where, call in locks.items() if "no_key=True" not in call]
    # What is to be deleted waits for who refers to it, while it holds nothing else.
    assert [where.partition(":")[0] for where in without] == [
        "notices/channels/actions.py"
    ]


def test_what_others_refer_to_is_not_locked_against_them_by_update_or_create() -> None:
    """It locks as `select_for_update()` does, and takes no `no_key`."""
    calls = {
        ast.unparse(call.func.value).removesuffix(".objects")
        for package in PACKAGES
        for _, text in files_with("update_or_create", package)
        for call in ast.walk(ast.parse(text))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr == "update_or_create"
    }
    referred_to = {
        one.__name__ for one in apps.get_models() if one._meta.related_objects
    }
    assert "Pulse" in calls
    assert calls & referred_to == set()


def test_every_package_is_under_the_tools_that_are_told_their_names() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert set(PACKAGES) <= set(tools["mypy"]["files"])
    assert set(PACKAGES) <= set(tools["coverage"]["run"]["source"])
    assert set(PACKAGES) == set(tools["importlinter"]["root_packages"])


def test_no_migration_takes_its_lists_from_the_running_code() -> None:
    """What it read would change with the code, so that `makemigrations` misses what an upgraded database needs."""
    lists = re.compile(
        r"^from [a-z_.]+\.(events|kinds|roles|states|catalogue|stages|document) import",
        re.MULTILINE,
    )
    found = [
        path.relative_to(ROOT)
        for path in ROOT.glob("*/migrations/*.py")
        if lists.search(path.read_text())
    ]
    assert found == []


@pytest.mark.slow
def test_whatever_the_product_imports_is_a_dependency_of_its_own() -> None:
    """A package that only comes along with another one goes when that one changes its mind."""
    lines = (ROOT / "requirements" / "base.in").read_text().split()
    # An extra is named for, too: psycopg[pool] brings psycopg-pool.
    declared = {
        canonical("-".join(filter(None, (name, extra))))
        for line in lines
        for name, _, extras in [line.partition("==")[0].rstrip("]").partition("[")]
        for extra in ["", *extras.split(",")]
    }
    of_module = metadata.packages_distributions()
    imported = {
        name
        for package in PACKAGES
        if package not in ("sandbox", "qm")
        for path in (ROOT / package).rglob("*.py")
        for name in imported_by(ast.parse(path.read_text()))
    }
    outside = imported - set(PACKAGES) - set(sys.stdlib_module_names)
    assert len(outside) > 15
    assert [
        name
        for name in sorted(outside)
        if not {canonical(d) for d in of_module[name]} & declared
    ] == []


def imported_by(tree: ast.AST) -> set[str]:
    """The top-level packages that a module imports."""
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    names |= {
        node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
    }
    return {name.partition(".")[0] for name in names}


def canonical(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()
