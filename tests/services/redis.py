"""A Redis of the tests' own, in memory only."""

from functools import cache

from django.conf import settings
from redis import Redis as Client
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from tests.services.process import Server, find_program


class Redis(Server):
    """A server with 64 databases, two for each test process."""

    name = "Redis"
    program = "redis-server"

    def url(self, database: int = 0) -> str:
        """The address of one database, as `QM_BROKER_URL` and `QM_CACHE_URL` take it."""
        return f"redis://127.0.0.1:{self.port}/{database}"

    def argv(self) -> list[str]:
        """Loopback only; nothing is written to disk."""
        return [
            *[
                find_program(self.program),
                "--bind",
                "127.0.0.1",
                "--port",
                str(self.port),
            ],
            *[
                "--save",
                "",
                "--appendonly",
                "no",
                "--databases",
                "64",
                "--dir",
                str(self.folder),
            ],
        ]

    def answers(self) -> bool:
        """Whether it answers a PING."""
        try:
            with self.client() as client:
                return bool(client.ping())
        except RedisError:
            return False

    def flush(self) -> None:
        """Lose everything it holds, in every database."""
        with self.client() as client:
            client.flushall()

    def client(self, database: int = 0, *, timeout: float = 5) -> Client:
        """A connection to one database; `timeout` in seconds. The caller closes it."""
        # Without retries: a test that asks whether it answers wants to know now.
        never = Retry(NoBackoff(), 0)
        return Client(
            retry=never,
            host="127.0.0.1",
            port=self.port,
            db=database,
            socket_timeout=timeout,
            socket_connect_timeout=5,
        )


@cache
def of_settings() -> "list[Client]":
    """Clients of the process's cache and of its queue."""
    addresses = (settings.CACHES["default"]["LOCATION"], settings.CELERY["broker_url"])
    return [Client.from_url(address) for address in addresses]
