"""A Backstage backend beside the portal of a test, whose users are people of the portal."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import SecretStr
from pytest_django import Settings

from accounts.directory import backstage as directory
from accounts.models import User
from sandbox.backstage import CATALOG_TOKEN, NOTICES_TOKEN, OK, SandboxBackstage
from sandbox.serving import Served, listen, port_of
from tests.calling import Caller
from tests.serving import serving


@pytest.fixture(scope="session")
def backstage_server() -> Iterator[tuple[SandboxBackstage, str]]:
    """One backend for all tests of a process: its end takes longer than most of them."""
    backend, socket = SandboxBackstage(), listen(0)
    with serving(Served(backend.app, socket, None)):
        yield backend, f"http://127.0.0.1:{port_of(socket)}"


def connect(settings: Settings, address: str) -> None:
    """Have the portal of these settings know the backend at an address, and none of the keys of another."""
    change = {
        "backstage_url": address,
        "backstage_catalog_token": SecretStr(CATALOG_TOKEN),
    }
    settings.ENV = settings.ENV.model_copy(update=change)
    directory.connection.cache_clear()


@pytest.fixture
def backend(
    backstage_server: tuple[SandboxBackstage, str], settings: Settings
) -> Iterator[SandboxBackstage]:
    """A backend that the portal is connected with; nobody is in its catalog."""
    found, address = backstage_server
    connect(settings, address)
    yield found
    directory.connection.cache_clear()
    found.users.clear()
    found.asked.clear()
    found.shown.clear()
    found.is_away, found.notifying = False, OK


@pytest.fixture
def notifying(backend: SandboxBackstage, settings: Settings) -> SandboxBackstage:
    """The same, in which people are told what they are told by mail."""
    change = {"backstage_notices_token": SecretStr(NOTICES_TOKEN)}
    settings.ENV = settings.ENV.model_copy(update=change)
    directory.connection.cache_clear()
    return backend


def named(backend: SandboxBackstage, person: User) -> str:
    """The name in the catalog of a person, who is there from now on."""
    name = person.name.lower().replace(" ", ".")
    backend.users[name] = str(person.oid)
    return name


class BackstageCaller(Caller):
    """A plugin that calls the portal, for a person unless there is none."""

    def __init__(
        self, backend: SandboxBackstage, person: User | None, **claims: Any
    ) -> None:
        super().__init__()
        name = named(backend, person) if person else ""
        self.headers = {"Authorization": f"Bearer {backend.token(name, **claims)}"}

    def invoke(self, action: str, given: object = None) -> Any:
        """The answer to an action; no body at all without anything given."""
        address = f"/api/backstage/.backstage/actions/v1/actions/quartermaster%3A{action}/invoke"
        return self.send("POST", address, b"" if given is None else given, key=None)
