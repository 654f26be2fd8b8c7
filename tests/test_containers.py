"""The compose file and the image: no default secrets, nothing runs as root, everything has a health check."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.packages import PRODUCT, ROOT

COMPOSE = (ROOT / "docker-compose.yml").read_text()
DOCKERFILE = (ROOT / "Dockerfile").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE)["services"]
PORTAL = {"web", "worker", "beat", "migrate"}
MAY_HAVE_A_DEFAULT = {
    "QM_LISTEN", "QM_TRUSTED_PROXIES", "QM_SECRET_KEY_FALLBACKS", "QM_FLEET_FILE", "QM_WEBHOOK_HOSTS_ALLOWED",
    *(f"QM_GIT_{name}" for name in ("CREDENTIALS", "HOSTS_ALLOWED", "AUTHOR")),
    *(f"QM_MAIL_{name}" for name in ("HOST", "PORT", "TLS", "USERNAME", "PASSWORD", "FROM")),
}  # fmt: skip


def variables() -> dict[str, str]:
    """Every `${NAME…}` of the compose file with what follows its name."""
    return dict(re.findall(r"\$\{(\w+)([^}]*)\}", COMPOSE))


def test_it_starts_every_part_of_the_portal() -> None:
    assert set(SERVICES) == PORTAL | {"postgres", "redis"}


def test_it_refuses_to_start_without_a_value_for_each_setting() -> None:
    for name, rest in variables().items():
        if name not in MAY_HAVE_A_DEFAULT:
            assert rest == f":?set {name}", name


def test_the_example_environment_names_every_variable_and_gives_no_secret() -> None:
    given = dict(
        line.split("=", 1)
        for line in (ROOT / ".env.example").read_text().splitlines()
        if line and not line.startswith("#")
    )
    assert set(given) == set(variables())
    assert {name for name, value in given.items() if value} <= MAY_HAVE_A_DEFAULT


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_each_service_is_locked_down(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert "no-new-privileges:true" in service["security_opt"]
    assert "privileged" not in service


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"migrate"}))
def test_each_lasting_service_has_a_health_check(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}


@pytest.mark.parametrize("name", ["postgres", "redis"])
def test_the_stores_are_not_reachable_from_outside(name: str) -> None:
    assert "ports" not in SERVICES[name]


@pytest.mark.parametrize("name", ["web", "worker", "beat"])
def test_nothing_starts_before_the_database_is_migrated(name: str) -> None:
    assert SERVICES[name]["depends_on"]["migrate"]["condition"] == "service_completed_successfully"


def test_the_web_server_asks_a_path_that_exists() -> None:
    from django.urls import resolve

    question = " ".join(SERVICES["web"]["healthcheck"]["test"])
    path = re.search(r"127\.0\.0\.1:8000(/[^\"]*)\"", question)
    assert path is not None
    assert resolve(path[1]).func is not None


def test_the_image_runs_as_nobody_in_particular_from_hashed_packages() -> None:
    final = DOCKERFILE.rpartition("FROM ")[2]
    assert "USER 10001" in final
    assert "--require-hashes -r requirements/base.txt" in DOCKERFILE
    assert "-k" in final
    assert "portal.asgi:application" in final


def test_the_image_holds_the_whole_product_and_no_sandbox() -> None:
    copied = set(re.findall(r"^COPY (\w+) \w+$", DOCKERFILE, re.MULTILINE))
    ignored = (ROOT / ".dockerignore").read_text()
    assert copied == {*PRODUCT, "templates", "static"}
    assert "sandbox" not in copied
    assert all(f"!{name}\n" in ignored for name in copied)


def test_packages_are_pinned_with_hashes_and_name_no_host() -> None:
    for path in Path(ROOT / "requirements").glob("*.txt"):
        text = path.read_text()
        assert "--hash=sha256:" in text
        assert "://" not in text, path.name
        assert not re.search(r"^[A-Za-z0-9][^=\n]*$", text, re.MULTILINE), path.name


def test_every_direct_dependency_names_one_version() -> None:
    for path in Path(ROOT / "requirements").glob("*.in"):
        for line in path.read_text().splitlines():
            assert line.startswith("-r ") or "==" in line, f"{path.name}: {line}"
