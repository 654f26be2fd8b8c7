"""The servers the other tests stand on do what those tests take for granted."""

import psycopg
import pytest
from redis.exceptions import TimeoutError as RedisTimeoutError

from tests.services.postgres import Postgres
from tests.services.process import port_of, reserve_port
from tests.services.redis import Redis


@pytest.mark.slow
def test_a_killed_postgres_comes_back_with_what_was_committed(
    own_postgres: Postgres,
) -> None:
    own_postgres.execute("CREATE TABLE kept AS SELECT 42 AS answer")
    own_postgres.kill()
    with pytest.raises(psycopg.OperationalError):
        own_postgres.execute("SELECT 1")
    own_postgres.start()
    own_postgres.execute("INSERT INTO kept SELECT answer FROM kept")


def test_a_flushed_redis_holds_nothing(own_redis: Redis) -> None:
    with own_redis.client(3) as client:
        client.set("key", "value")
        own_redis.flush()
        assert client.get("key") is None


def test_a_killed_redis_starts_again_on_the_same_port(own_redis: Redis) -> None:
    own_redis.kill()
    assert not own_redis.answers()
    own_redis.start()
    assert own_redis.answers()


def test_a_frozen_redis_keeps_its_callers_waiting_until_it_thaws(
    own_redis: Redis,
) -> None:
    own_redis.freeze()
    with own_redis.client(timeout=0.1) as client, pytest.raises(RedisTimeoutError):
        client.ping()
    own_redis.thaw()
    assert own_redis.answers()


def test_a_server_that_cannot_start_says_why_in_its_own_words(own_redis: Redis) -> None:
    with reserve_port() as port:
        broken = Redis(own_redis.folder / "broken", port_of(port))
        broken.argv = lambda: ["redis-server", "--port", "none"]  # type: ignore[method-assign]
        with pytest.raises(RuntimeError, match="FATAL CONFIG FILE ERROR"):
            broken.start()


def test_the_shared_servers_are_those_the_settings_name(
    postgres: Postgres, redis: Redis
) -> None:
    from django.conf import settings

    assert settings.DATABASES["default"]["PORT"] == str(postgres.port)
    assert f":{redis.port}/" in settings.CACHES["default"]["LOCATION"]
    assert postgres.answers()
    assert redis.answers()
