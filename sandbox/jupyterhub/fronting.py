"""HTTPS before a plain port, for callers that take nothing else, as an ingress is in a cluster."""

import asyncio
import ssl
from contextlib import suppress
from socket import socket

from sandbox.certificates import Certificates

CHUNK = 65536


async def front(
    listening: socket, port: int, shown: Certificates, stop: asyncio.Event
) -> None:
    """Pass every connection on to a loopback port until `stop` is set."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(shown.chain, shown.key)

    async def passed(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection(
                "127.0.0.1", port
            )
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pump(reader, inner_writer), _pump(inner_reader, writer))

    async with await asyncio.start_server(passed, sock=listening, ssl=context):
        await stop.wait()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
    with suppress(OSError):
        writer.close()
