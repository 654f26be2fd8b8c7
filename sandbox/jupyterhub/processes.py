"""The hub and its proxy as processes, on loopback ports that stay the same over restarts."""

import json
import os
import secrets
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.credentials import write_private
from sandbox.jupyterhub.environment import PROXY, PYTHON, ROOT
from sandbox.serving import listen, port_of

SECONDS = 90.0
SHIPPED = ROOT / "deploy" / "jupyterhub" / "jupyterhub_config.py"
CONFIG = Path(__file__).with_name("hub_config.py")
INTEGRATION = ROOT / "integrations" / "jupyterhub"


class HubFailed(Exception):
    """The hub or its proxy ended, or did not answer; the message ends with its last lines."""


@dataclass
class Hub:
    """One hub with its proxy; `data` is its folder, whose files hold secrets.

    `cluster` is a cluster's part of sandbox.json, `entra` that of Entra ID, `ca` whom both are signed by. `portal` is
    the portal's address and `key` the key by which the hub calls it: without one, that of the file `key` counts, which
    may come later. Browsers open it at `browser_port`: for 0 where they did last time, at first wherever is room.
    """

    data: Path
    cluster: Mapping[str, Any]
    entra: Mapping[str, str]
    ca: str
    portal: str
    key: str = ""
    namespace: str = "jupyterhub"
    browser_port: int = 0
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = self.data / "hub.json"
        kept = (
            json.loads(path.read_text(encoding="utf-8")) if path.exists() else _fresh()
        )
        if self.browser_port:
            kept["browser"] = f"http://127.0.0.1:{self.browser_port}"
        self.described: dict[str, Any] = kept | {
            "data": str(self.data.resolve()),
            "shipped": str(SHIPPED),
            "namespace": self.namespace,
            "entra": dict(self.entra),
            "ca": self.ca,
        }
        write_private(path, json.dumps(self.described, indent=2) + "\n")
        write_private(self.data / "token", self.token)
        if self.key or not (self.data / "key").exists():
            write_private(self.data / "key", self.key)

    @property
    def token(self) -> str:
        """By which the portal calls the hub."""
        return str(self.described["token"])

    @property
    def browser(self) -> str:
        """Where people open it."""
        return str(self.described["browser"])

    def start(self) -> None:
        """Start both and wait until the hub answers; raises HubFailed."""
        self.start_proxy()
        self.start_hub()

    def start_proxy(self) -> None:
        """Start the proxy, which knows no route before the hub tells it."""
        at, api = (_port(self.described[name]) for name in ("browser", "proxy_api"))
        where = [
            "--ip",
            "127.0.0.1",
            "--port",
            at,
            "--api-ip",
            "127.0.0.1",
            "--api-port",
            api,
        ]
        command = [
            "node",
            str(PROXY),
            *where,
            "--error-target",
            f"{self.described['hub']}/hub/error",
        ]
        self._start(
            "proxy", command, {"CONFIGPROXY_AUTH_TOKEN": self.described["proxy_token"]}
        )
        headers = {"Authorization": f"token {self.described['proxy_token']}"}
        self._wait(
            "proxy",
            lambda: _answers(f"{self.described['proxy_api']}/api/routes", headers),
        )

    def start_hub(self) -> None:
        """Start the hub on the data of last time; servers that run are its own again."""
        environment = {
            "KUBECONFIG": str(self.cluster["hub_kubeconfig"]),
            "PYTHONPATH": str(INTEGRATION),
            "SANDBOX_HUB": str(self.data.resolve() / "hub.json"),
            "QUARTERMASTER_URL": self.portal,
            "QUARTERMASTER_KEY_FILE": str(self.data.resolve() / "key"),
            "QUARTERMASTER_TOKEN_FILE": str(self.data.resolve() / "token"),
        }
        self._start(
            "hub", [str(PYTHON), "-m", "jupyterhub", "-f", str(CONFIG)], environment
        )
        self._wait("hub", lambda: _answers(f"{self.browser}/hub/api/", {}))

    def kill_hub(self) -> None:
        """End the hub without a word, as a node that fails does."""
        self._running["hub"].kill()
        self._stop("hub")

    def stop(self) -> None:
        """End both; servers go on in their pods."""
        for name in ("hub", "proxy"):
            self._stop(name)

    def ended(self) -> str:
        """Which of the two ended by itself; empty while both run."""
        return next(
            (
                name
                for name, process in self._running.items()
                if process.poll() is not None
            ),
            "",
        )

    def log(self, name: str) -> Path:
        """Where a process writes."""
        return self.data / f"{name}.log"

    def _start(self, name: str, command: list[str], extra: Mapping[str, str]) -> None:
        passed = {
            key: value
            for key, value in os.environ.items()
            if key in ("PATH", "HOME", "LANG", "TMPDIR")
        }
        with self.log(name).open("ab") as log:
            self._running[name] = subprocess.Popen(  # noqa: S603 - programs of this repository's environments
                command,
                cwd=self.data,
                env={**passed, **extra},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def _wait(self, name: str, is_there: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not is_there():
            if self._running[name].poll() is not None or time.monotonic() > deadline:
                last = self.log(name).read_text(encoding="utf-8", errors="replace")[
                    -3000:
                ]
                self.stop()
                raise HubFailed(f"{name} does not answer:\n{last}")
            time.sleep(0.1)

    def _stop(self, name: str) -> None:
        process = self._running.pop(name, None)
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _fresh() -> dict[str, Any]:
    """Ports that nobody has now, and secrets."""
    sockets = [listen(0) for _ in range(3)]
    browser, hub, api = (f"http://127.0.0.1:{port_of(one)}" for one in sockets)
    for one in sockets:
        one.close()
    return {
        "browser": browser,
        "hub": hub,
        "proxy_api": api,
        "proxy_token": secrets.token_hex(32),
        "state_key": secrets.token_hex(32),
        "token": secrets.token_hex(32),
    }


def _port(url: str) -> str:
    return url.rpartition(":")[2]


def _answers(url: str, headers: Mapping[str, str]) -> bool:
    request = urllib.request.Request(url, headers=dict(headers))  # noqa: S310 - loopback
    with suppress(OSError), urllib.request.urlopen(request, timeout=2) as answer:  # noqa: S310
        return bool(answer.status == 200)
    return False
