"""The web server's processes share the connections that come together."""

import asyncio
import socket
from itertools import pairwise

from portal.web_worker import FairLoop

CLIENTS = 5


def test_a_process_takes_one_connection_at_a_time_and_leaves_the_rest_to_the_others() -> (
    None
):
    taken: list[asyncio.BaseTransport] = []

    class Taken(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            taken.append(transport)

    async def counts(listening: socket.socket) -> list[int]:
        """How many it has after each turn of its loop, until it has all."""
        server = await loop.create_server(Taken, sock=listening)
        found = [0]
        while found[-1] < CLIENTS:
            await asyncio.sleep(0)
            found.append(len(taken))
        for transport in taken:
            transport.close()
        server.close()
        return found

    loop = FairLoop()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        clients = [
            socket.create_connection(listening.getsockname()) for _ in range(CLIENTS)
        ]
        found = loop.run_until_complete(counts(listening))
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    for client in clients:
        client.close()
    assert {after - before for before, after in pairwise(found)} <= {0, 1}
