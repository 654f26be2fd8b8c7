"""The shared cache holds JSON alone: what somebody else puts into Redis is never run."""

import pickle
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest
from django.core.cache import caches
from django.core.cache.backends.base import BaseCache
from django.test import Client
from pytest_django import Settings
from redis import Redis as RedisClient
from redis.connection import Connection

from onboarding import groups
from portal import env
from portal.celery import OneTask
from sandbox.world import person_id
from tests import factories
from tests.planting import Planted
from tests.sandbox.entra.running import Running

CLIMATE = str(factories.group_oid(9))


class Noting(OneTask):
    """A task that notes what it was run with."""

    ran: ClassVar[list[int]] = []

    def run(self, number: int) -> None:
        """Note it."""
        self.ran.append(number)


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """The folder that stands when somebody unpickled the value that was planted."""
    folder = tmp_path / "code was run"
    pickle.loads(pickle.dumps(Planted(folder)))
    assert folder.is_dir(), "the trap does not work"
    folder.rmdir()
    return folder


@pytest.fixture
def planted(settings: Settings) -> RedisClient:
    """Redis as somebody sees it who can write to it."""
    return RedisClient.from_url(settings.CACHES["default"]["LOCATION"])


def file_cache(folder: Path, settings: Settings) -> BaseCache:
    """The cache of a demo."""
    settings.CACHES = {"default": env.cache(f"file://{folder}")}
    return caches["default"]


@pytest.mark.django_db
@pytest.mark.parametrize("protocol", [0, 2, pickle.HIGHEST_PROTOCOL])
def test_a_pickle_under_a_known_key_of_redis_is_not_run_and_the_page_works(
    client: Client, directory: Running, planted: RedisClient, trap: Path, protocol: int
) -> None:
    client.force_login(
        factories.person("Ada Okafor", oid=person_id(1), groups=[CLIMATE])
    )
    with planted:
        planted.set(f":1:{groups._key(CLIMATE)}", pickle.dumps(Planted(trap), protocol))
        page = client.get("/teams/new/groups")
        assert page.status_code == 200
        assert CLIMATE in page.content.decode()
        assert not trap.exists()
        assert b"climate-team" in (planted.get(f":1:{groups._key(CLIMATE)}") or b"")


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.parametrize(
    "value", [b"[" * 100_000, b'{"name": "x"}', b'["a", 1]', b"7", b"\xff", b"null"]
)
def test_other_bytes_under_a_known_key_count_as_nothing(
    client: Client, directory: Running, planted: RedisClient, value: bytes
) -> None:
    client.force_login(
        factories.person("Ada Okafor", oid=person_id(1), groups=[CLIMATE])
    )
    with planted:
        planted.set(f":1:{groups._key(CLIMATE)}", value)
    assert "climate-team" in client.get("/teams/new/groups").content.decode()


@pytest.mark.django_db
def test_a_name_is_asked_for_once_and_then_comes_from_redis(
    client: Client, directory: Running
) -> None:
    client.force_login(
        factories.person("Ada Okafor", oid=person_id(1), groups=[CLIMATE])
    )
    assert "climate-team" in client.get("/teams/new/groups").content.decode()
    directory.admin(
        "POST", "/sandbox/faults", path=f"/v1.0/groups/{CLIMATE}$", status=503, times=99
    )
    assert "climate-team" in client.get("/teams/new/groups").content.decode()


@pytest.mark.usefixtures("redis")
def test_a_counter_in_redis_goes_on_keeps_its_end_and_is_not_made_by_counting(
    settings: Settings,
) -> None:
    cache = caches["default"]
    with pytest.raises(ValueError, match="no key"):
        cache.incr("calls")
    assert cache.add("calls", 1, 60)
    assert [cache.incr("calls"), cache.incr("calls", 5), cache.decr("calls")] == [
        2,
        7,
        6,
    ]
    with RedisClient.from_url(settings.CACHES["default"]["LOCATION"]) as redis:
        assert 0 < redis.ttl(":1:calls") <= 60


@pytest.mark.usefixtures("redis")
def test_requests_in_threads_of_their_own_share_the_connections_to_redis(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connected = []
    connect: Any = Connection._connect

    def noted(self: Connection) -> Any:
        connected.append(self)
        return connect(self)

    monkeypatch.setattr(Connection, "_connect", noted)
    caches["default"].set("asked", 1, 60)
    before = len(connected)
    for _ in range(5):
        thread = Thread(target=lambda: caches["default"].get("asked"))
        thread.start()
        thread.join()
    assert len(connected) == before


@pytest.mark.parametrize("argument", ["1", True, 1.0, None, {"id": 1}, [1]])
def test_a_task_takes_the_numbers_of_rows_and_nothing_else(argument: object) -> None:
    task: Callable[..., None] = Noting().__call__
    calls: list[Callable[[], None]] = [
        lambda: task(argument),
        lambda: task(number=argument),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="ids of rows"):
            call()
    assert Noting.ran == []


def test_the_file_of_a_demos_cache_is_never_unpickled(
    tmp_path: Path, settings: Settings, trap: Path
) -> None:
    cache = file_cache(tmp_path / "cache", settings)
    cache.set("key", ["Ä", 1], 60)
    [file] = (tmp_path / "cache").glob("*.djcache")
    assert cache.get("key") == ["Ä", 1]
    file.write_bytes(pickle.dumps(Planted(trap)))
    assert cache.get("key", "none") == "none"
    file.write_bytes(b"99999999999\n" + pickle.dumps(Planted(trap)))
    assert cache.get("key", "none") == "none"
    assert not trap.exists()


def test_a_demos_cache_counts_ends_and_forgets(
    tmp_path: Path, settings: Settings
) -> None:
    cache = file_cache(tmp_path / "cache", settings)
    assert cache.add("count", 0, 60)
    assert not cache.add("count", 5, 60)
    assert [cache.incr("count"), cache.incr("count")] == [1, 2]
    assert cache.touch("count", 60)
    cache.set("count", 1, -1)
    assert cache.get("count") is None
    assert not cache.touch("count", 60)
    cache.set("lasting", {"a": None}, None)
    assert cache.get("lasting") == {"a": None}
    cache.clear()
    assert cache.get("lasting", 3) == 3


def test_what_is_no_json_cannot_be_stored(tmp_path: Path, settings: Settings) -> None:
    with pytest.raises(TypeError):
        file_cache(tmp_path / "cache", settings).set("key", object())
