"""The compose file and the image: no default secrets, nothing runs as root, everything has a health check."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from portal.env import Environment, read
from scripts.packages import PRODUCT, ROOT
from tests.services.process import port_of, reserve_port, wait_until

COMPOSE = (ROOT / "docker-compose.yml").read_text()
DOCKERFILE = (ROOT / "Dockerfile").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE)["services"]
PORTAL = {"web", "worker", "beat", "watcher", "migrate"}
ENVIRONMENT: dict[str, str] = SERVICES["web"]["environment"]
REQUIRED = {
    "QM_KUBECONFIGS",
    "QM_PUBLIC_URL",
    "QM_ALLOWED_HOSTS",
    "POSTGRES_PASSWORD",
    "POSTGRES_OWNER_PASSWORD",
    "POSTGRES_APP_PASSWORD",
    "REDIS_PASSWORD",
    "QM_ROLE_GROUPS",
    *(f"QM_ENTRA_{name}" for name in ("AUTHORITY", "TENANT_ID", "CLIENT_ID")),
}
# Empty where a file holds them: Compose cannot see that file, so the portal is who refuses to start without it.
REQUIRED_OR_IN_A_FILE = {"QM_SECRET_KEY", "QM_ENTRA_CLIENT_SECRET"}
NOT_PASSED = {
    "QM_DEBUG": "shows failures with their source",
    "QM_DEMO": "is for the demo alone",
    "QM_DATA_DIR": "is a folder of the image",
    "QM_SIGN_IN_ORIGIN": "is empty with Entra ID",
    "QM_AZURE_TOKEN_FILE": "is where Kubernetes puts it",
    "QM_MIGRATE_DATABASE_URL": "is the service's that migrates, and nobody else's",
}
# What Compose itself decides.
FIXED = {
    "QM_KUBECONFIG_DIR",
    "QM_GIT_CREDENTIALS_DIR",
    "QM_HUB_CREDENTIALS_DIR",
    *(f"QM_{name}_URL" for name in ("DATABASE", "BROKER", "CACHE")),
}
REFERENCE = re.compile(r"\$\{(\w+)(:?[-+?])?([^}]*)\}")


def references() -> list[tuple[str, str, str]]:
    """Every `${NAME…}` of the compose file: its name, how it is asked for, and what stands behind that."""
    return REFERENCE.findall(COMPOSE)


def in_the_container(**given: str) -> dict[str, str]:
    """The portal's environment when these alone have a value in .env, as Compose works it out."""

    def value(match: re.Match[str]) -> str:
        name, how, otherwise = match.groups()
        if how == ":+":
            return otherwise if given.get(name) else ""
        return given.get(name) or (otherwise if how == ":-" else "")

    return {name: REFERENCE.sub(value, text) for name, text in ENVIRONMENT.items()}


def test_it_starts_every_part_of_the_portal() -> None:
    assert set(SERVICES) == PORTAL | {"postgres", "redis"}


def test_it_refuses_to_start_without_a_value_for_each_setting() -> None:
    how = {name: (sign, rest) for name, sign, rest in references()}
    for name in REQUIRED:
        assert how[name] == (":?", f"set {name}"), name
    for name in REQUIRED_OR_IN_A_FILE:
        assert how[name] == ("?", f"set {name}"), name
    assert {
        name for name, (sign, _) in how.items() if "?" in sign
    } == REQUIRED | REQUIRED_OR_IN_A_FILE


def test_every_setting_reaches_the_portal() -> None:
    settings = {f"QM_{name.upper()}" for name in Environment.model_fields} | {
        "QM_SECRETS_DIR"
    }
    assert set(ENVIRONMENT) == settings - set(NOT_PASSED)
    assert all(
        ENVIRONMENT[name].startswith(f"${{{name}") for name in set(ENVIRONMENT) - FIXED
    )


def test_what_is_left_empty_keeps_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    given = dict.fromkeys(REQUIRED | REQUIRED_OR_IN_A_FILE, "x")
    given |= {"QM_ALLOWED_HOSTS": '["gpus.example.com"]', "QM_ROLE_GROUPS": "{}"}
    started = start(monkeypatch, in_the_container(**given), secrets="")
    for name, field in Environment.model_fields.items():
        if not field.is_required() and f"QM_{name.upper()}" not in FIXED.union(given):
            assert getattr(started, name) == field.get_default(
                call_default_factory=True
            ), name


def test_secrets_may_lie_in_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = dict.fromkeys(REQUIRED, "x") | {
        "QM_ALLOWED_HOSTS": "[]",
        "QM_ROLE_GROUPS": "{}",
    }
    inside = in_the_container(**given, QM_SECRETS_DIR=str(tmp_path))
    assert inside["QM_SECRETS_DIR"] == "/secrets"
    assert '"${QM_SECRETS_DIR:-/dev/null}:/secrets:ro"' in COMPOSE
    for name in ("QM_SECRET_KEY", "QM_ENTRA_CLIENT_SECRET"):
        with pytest.raises(ValidationError, match=name.removeprefix("QM_").lower()):
            start(monkeypatch, inside, secrets=str(tmp_path))
        (tmp_path / name.lower()).write_text(f"the file of {name}\n")
    started = start(monkeypatch, inside, secrets=str(tmp_path))
    assert started.secret_key.get_secret_value() == "the file of QM_SECRET_KEY"
    assert (
        started.entra_client_secret.get_secret_value()
        == "the file of QM_ENTRA_CLIENT_SECRET"
    )


def start(
    patch: pytest.MonkeyPatch, variables: dict[str, str], *, secrets: str
) -> Environment:
    """What the portal reads when it starts with these variables and no others of its own."""
    for name in [name for name in os.environ if name.startswith("QM_")]:
        patch.delenv(name)
    for name, value in variables.items():
        patch.setenv(name, value)
    return read(secrets or None)


def test_the_example_environment_names_every_variable_and_gives_no_secret() -> None:
    given = dict(
        line.split("=", 1)
        for line in (ROOT / ".env.example").read_text().splitlines()
        if line and not line.startswith("#")
    )
    assert set(given) == {name for name, _, _ in references()}
    filled = {name for name, value in given.items() if value}
    assert filled.isdisjoint(REQUIRED | REQUIRED_OR_IN_A_FILE | {"QM_MAIL_PASSWORD"})


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_each_service_is_locked_down(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert "no-new-privileges:true" in service["security_opt"]
    assert "privileged" not in service


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_folder_in_memory_has_a_size(name: str) -> None:
    for mounted in SERVICES[name].get("tmpfs", []):
        assert re.search(r":.*size=\d+m", mounted), mounted


@pytest.mark.parametrize("name", sorted(set(SERVICES) - {"migrate"}))
def test_each_lasting_service_has_a_health_check(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}


@pytest.mark.parametrize("name", ["postgres", "redis"])
def test_the_stores_are_not_reachable_from_outside(name: str) -> None:
    assert "ports" not in SERVICES[name]


def test_only_the_service_that_migrates_knows_the_login_that_owns_the_tables() -> None:
    owner, app = "//quartermaster_owner:", "//quartermaster_app:"
    assert owner in SERVICES["migrate"]["environment"]["QM_MIGRATE_DATABASE_URL"]
    for name in PORTAL:
        assert app in SERVICES[name]["environment"]["QM_DATABASE_URL"], name
        assert (owner in str(SERVICES[name]["environment"])) == (name == "migrate"), (
            name
        )
    assert SERVICES["postgres"]["environment"]["POSTGRES_USER"] == "postgres"
    assert (
        "./deploy/postgres/roles.sql:/docker-entrypoint-initdb.d/roles.sql:ro"
        in SERVICES["postgres"]["volumes"]
    )


@pytest.mark.parametrize("name", ["database", "broker"])
def test_each_store_is_in_a_network_of_its_own_that_leads_nowhere(name: str) -> None:
    store = {"database": "postgres", "broker": "redis"}[name]
    assert yaml.safe_load(COMPOSE)["networks"][name] == {"internal": True}
    assert SERVICES[store]["networks"] == [name]
    assert {
        key for key, service in SERVICES.items() if name in service["networks"]
    } == PORTAL | {store}


def test_redis_answers_nobody_without_its_password(tmp_path: Path) -> None:
    """The command of the compose file, run here with another folder and port."""
    assert ENVIRONMENT["QM_CACHE_URL"].startswith(
        "redis://:${REDIS_PASSWORD:?set REDIS_PASSWORD}@"
    )
    shell = [
        part.replace("$$", "$").replace("/tmp/", f"{tmp_path}/")
        for part in SERVICES["redis"]["command"]
    ]
    with reserve_port() as reserved:
        port = port_of(reserved)
        shell[-1] += f" --port {port} --bind 127.0.0.1 --dir {tmp_path}"
        server = subprocess.Popen(
            shell,
            env={**os.environ, "REDISCLI_AUTH": "abc123"},
            stdout=subprocess.DEVNULL,
        )
        try:
            wait_until(lambda: answer(port, "abc123") == "PONG", what="Redis")
            assert answer(port, None) == "Authentication required."
            assert "abc123" not in Path(f"/proc/{server.pid}/cmdline").read_text()
        finally:
            server.terminate()
            server.wait(10)


def answer(port: int, password: str | None) -> str:
    """What Redis says to a ping."""
    try:
        with Redis(
            port=port, password=password, protocol=2, retry=Retry(NoBackoff(), 0)
        ) as client:
            return "PONG" if client.ping() else ""
    except RedisError as error:
        return str(error)


@pytest.mark.parametrize("name", ["web", "worker", "beat", "watcher"])
def test_nothing_starts_before_the_database_is_migrated(name: str) -> None:
    assert (
        SERVICES[name]["depends_on"]["migrate"]["condition"]
        == "service_completed_successfully"
    )


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
    assert (
        '"-k", "portal.web_worker.BoundedWorker", "--worker-connections", "2000"'
        in final
    )
    assert "portal.asgi:application" in final


def test_the_image_holds_the_whole_product_and_no_sandbox() -> None:
    copied = set(re.findall(r"^COPY (\w+) \w+$", DOCKERFILE, re.MULTILINE))
    ignored = (ROOT / ".dockerignore").read_text()
    assert copied == {*PRODUCT, "templates", "static", "docs"}
    assert "sandbox" not in copied
    # Of the documents, what Help shows (tests/portal/test_page_help.py).
    assert all(f"!{name}\n" in ignored for name in copied - {"docs"})


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
