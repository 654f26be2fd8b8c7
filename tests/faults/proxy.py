"""A proxy between the portal and whatever it calls, which fails as told: over TCP, so that any protocol goes through.

Modes: `pass`, `delay` (seconds before the request goes on), `reset` (the request arrives, its answer never does),
`blackhole` (nothing goes on and nothing comes back), `status` (answers itself, plain HTTP only), `drip` (the answer
comes in pieces of a few bytes, `seconds` apart).
"""

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

HOST = "127.0.0.1"
PIECE = 64
READ = 65_536
BUSY = "Too many requests, please try again later.\n"


@dataclass
class Fault:
    """What happens to the next `times` exchanges, after `after` that go through."""

    mode: str
    times: int = 1
    after: int = 0
    seconds: float = 0.005
    status: int = 503
    headers: str = ""


@dataclass
class Proxy:
    """A listening port in front of another one; faults are used up in the order in which they were set."""

    target: int
    port: int = 0
    faults: list[Fault] = field(default_factory=list)
    exchanges: int = 0

    def fail(self, mode: str, **how: float | int | str) -> None:
        """Set what happens to the next exchanges."""
        self.faults.append(Fault(mode, **how))  # type: ignore[arg-type]

    def take(self) -> Fault:
        """What happens to the exchange that begins now."""
        self.exchanges += 1
        while self.faults and self.faults[0].times <= 0:
            del self.faults[0]
        if not self.faults:
            return Fault("pass")
        first = self.faults[0]
        if first.after > 0:
            first.after -= 1
            return Fault("pass")
        first.times -= 1
        return first

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """One connection; a request begins with the first bytes after an answer."""
        up_reader, up_writer = await asyncio.open_connection(HOST, self.target)
        link = _Link(self, reader, writer, up_reader, up_writer)
        answers = asyncio.create_task(link.answers())
        try:
            # Cancelled at the very end: asyncio would complain of a connection that ends so.
            with contextlib.suppress(ConnectionError, asyncio.CancelledError, _Over):
                await link.requests()
        finally:
            answers.cancel()
            for each in (up_writer, writer):
                each.close()


class _Over(Exception):
    """The connection is at its end."""


@dataclass
class _Link:
    proxy: Proxy
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    up_reader: asyncio.StreamReader
    up_writer: asyncio.StreamWriter
    fault: Fault | None = None

    async def requests(self) -> None:
        while data := await self.reader.read(READ):
            if self.fault is None:
                self.fault = self.proxy.take()
                if self.fault.mode == "delay":
                    await asyncio.sleep(self.fault.seconds)
            if self.fault.mode == "blackhole":
                continue
            if self.fault.mode == "status":
                await self._answer(data, self.fault)
            self.up_writer.write(data)

    async def answers(self) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await self.up_reader.read(READ):
                fault, self.fault = self.fault or Fault("pass"), None
                if fault.mode == "reset":
                    self._reset()
                    return
                if fault.mode == "drip":
                    for start in range(0, len(data), PIECE):
                        self.writer.write(data[start : start + PIECE])
                        await asyncio.sleep(fault.seconds)
                else:
                    self.writer.write(data)
        self.writer.close()

    async def _answer(self, data: bytes, fault: Fault) -> None:
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(
            (
                int(x[15:])
                for x in head.lower().split(b"\r\n")
                if x.startswith(b"content-length:")
            ),
            0,
        )
        while len(body) < length:
            body += await self.reader.read(READ)
        lines = f"HTTP/1.1 {fault.status} Injected\r\n{fault.headers}Content-Length: {len(BUSY)}\r\n"
        self.writer.write(f"{lines}Connection: close\r\n\r\n{BUSY}".encode())
        await self.writer.drain()
        raise _Over

    def _reset(self) -> None:
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


@contextmanager
def proxied(target: int) -> Iterator[Proxy]:
    """A proxy before a loopback port, served by a thread of its own until the block ends."""
    proxy, ready = Proxy(target), threading.Event()
    loops = list[tuple[asyncio.AbstractEventLoop, asyncio.Event]]()

    async def run() -> None:
        stop = asyncio.Event()
        server = await asyncio.start_server(proxy.serve, HOST, 0)
        proxy.port = server.sockets[0].getsockname()[1]
        loops.append((asyncio.get_running_loop(), stop))
        ready.set()
        await stop.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    thread = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield proxy
    finally:
        loops[0][0].call_soon_threadsafe(loops[0][1].set)
        thread.join(10)
