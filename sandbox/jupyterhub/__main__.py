"""The command `python -m sandbox.jupyterhub`: a hub beside a running sandbox, until SIGTERM or SIGINT."""

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from sandbox import certificates
from sandbox.jupyterhub.environment import install
from sandbox.jupyterhub.fronting import front
from sandbox.jupyterhub.processes import Hub, HubFailed
from sandbox.jupyterhub.rights import Rights
from sandbox.serving import listen, port_of

LOOK_SECONDS = 1.0


def main(arguments: list[str] | None = None) -> int:
    """Serve; print `jupyterhub ready` when it answers, and where in `--data`/address.json."""
    options = _parser().parse_args(arguments)
    try:
        install()
        asyncio.run(_run(options))
    except (OSError, ValueError, HubFailed, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"jupyterhub: {error}\n")
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sandbox.jupyterhub", description=__doc__
    )
    parser.add_argument(
        "--sandbox",
        type=Path,
        required=True,
        help="the data folder of the running sandbox",
    )
    parser.add_argument(
        "--cluster", required=True, help="the cluster whose notebooks it runs"
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="where the hub keeps its data"
    )
    parser.add_argument("--portal", required=True, help="the portal's address")
    parser.add_argument(
        "--port", type=int, default=0, help="port of its HTTPS; 0: free"
    )
    parser.add_argument(
        "--port-browser",
        type=int,
        default=0,
        help="port at which browsers open it without TLS; 0: as last time",
    )
    return parser


async def _run(options: argparse.Namespace) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    told = json.loads((options.sandbox / "sandbox.json").read_text(encoding="utf-8"))
    cluster = told["kubernetes"][options.cluster]
    rights = Rights(cluster, told["ca"])
    await asyncio.to_thread(rights.grant)
    # A key in the process list would be everybody's; one that is made later goes into `--data`/key.
    key = os.environ.get("QUARTERMASTER_KEY", "")
    hub = Hub(
        options.data,
        cluster,
        told["entra"],
        told["ca"],
        options.portal,
        key,
        browser_port=options.port_browser,
    )
    listening = listen(options.port)
    # Whoever calls as soon as it is said to be ready waits, and is not refused, until the front takes connections.
    listening.listen()
    await asyncio.to_thread(hub.start)
    try:
        address = f"https://127.0.0.1:{port_of(listening)}"
        shown = certificates.ensure(options.sandbox)
        serving = asyncio.create_task(
            front(listening, int(hub.browser.rpartition(":")[2]), shown, stop)
        )
        where = {
            "address": address,
            "browser": hub.browser,
            "token_file": str(options.data / "token"),
        }
        (options.data / "address.json").write_text(
            json.dumps(where, indent=2) + "\n", encoding="utf-8"
        )
        sys.stdout.write("jupyterhub ready\n")
        sys.stdout.flush()
        await _watch(hub, rights, stop)
        await serving
    finally:
        await asyncio.to_thread(hub.stop)


async def _watch(hub: Hub, rights: Rights, stop: asyncio.Event) -> None:
    """Give the hub its rights in new namespaces until it has to stop; raises HubFailed when it ends by itself."""
    while not stop.is_set():
        try:
            await asyncio.wait_for(stop.wait(), LOOK_SECONDS)
        except TimeoutError:
            if name := hub.ended():
                raise HubFailed(
                    f"{name} ended by itself, see {hub.log(name)}"
                ) from None
            await asyncio.to_thread(rights.follow)


if __name__ == "__main__":
    sys.exit(main())
