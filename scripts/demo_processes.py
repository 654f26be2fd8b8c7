"""The demo's processes: sandbox, web and worker, started in order, watched, and ended together."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
from dulwich.repo import Repo

ROOT = Path(__file__).resolve().parent.parent
PLATFORM_LEADS = "00000000-0000-4000-9000-000000000004"
LEADERSHIP = "00000000-0000-4000-9000-000000000005"
AUDITORS = "00000000-0000-4000-9000-000000000006"
# The cluster of the sample team that Ada is of.
HUB_CLUSTER = "training-eastus"
# Some seconds on a machine that has read everything once, far more on one that has not.
START_SECONDS = 90.0
# Packages and proxy are installed the first time.
HUB_SECONDS = 420.0


class DemoFailed(Exception):
    """Something did not start; the message names it and its log."""


def free_port() -> int:
    """A loopback port that nobody listens on now, below those that the kernel gives to whoever wants any.

    It is listened on seconds later: one of the kernel's could belong to a connection by then.
    """
    tries = iter(lambda: 20_000 + secrets.randbelow(12_000), None)
    return next(port for port in tries if is_free(port))


def is_free(port: int) -> bool:
    """Whether a loopback port can be listened on."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@dataclass
class Demo:
    """One demo: a folder for its data, a port for its web server, its processes, and settings of its own."""

    data: Path
    port: int
    settings: Mapping[str, str] = field(default_factory=dict)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Where the portal answers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def sandbox(self) -> dict[str, Any]:
        """What the sandbox wrote down: addresses, tokens and kubeconfig files."""
        found: dict[str, Any] = json.loads(
            (self.data / "sandbox" / "sandbox.json").read_text()
        )
        return found

    @property
    def hub(self) -> Path:
        """The folder of the demo's JupyterHub."""
        return self.data / "hub"

    @property
    def hub_address(self) -> str:
        """Where the portal calls the hub."""
        return f"https://127.0.0.1:{self.hub_ports['api']}"

    @property
    def hub_opened_at(self) -> str:
        """Where people's browsers open the hub."""
        return f"http://127.0.0.1:{self.hub_ports['browser']}"

    @property
    def hub_ports(self) -> dict[str, int]:
        """The hub's ports, which stay the same from one start of the demo to the next."""
        path = self.hub / "ports.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.write_text(json.dumps({"api": free_port(), "browser": free_port()}))
        found: dict[str, int] = json.loads(path.read_text())
        return found

    def repository(self) -> Path:
        """A bare Git repository in the demo's folder, made when it is not there yet."""
        path = self.data / "git" / "fleet.git"
        if not path.exists():
            path.mkdir(parents=True)
            Repo.init_bare(str(path), default_branch=b"main").close()
        return path

    def start_sandbox(self) -> None:
        """Start the offline world and wait until it serves; its state of last time is there again."""
        self.start_sandbox_at(
            self.data / "sandbox", "--port-sign-in", "0", name="sandbox"
        )

    def start_sandbox_at(self, folder: Path, *options: str, name: str) -> None:
        """Start a sandbox with data of its own and wait until it serves."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (folder / "sandbox.json").unlink(missing_ok=True)
        self.start(
            name, [sys.executable, "-m", "sandbox", "--data", str(folder), *options], {}
        )
        self.wait(name, lambda: b"sandbox ready" in self.log(name).read_bytes())

    def start_web(self) -> None:
        """Start the web server; it answers some seconds later."""
        (self.data / "static").mkdir(exist_ok=True)
        command = ["gunicorn", "-k", "portal.web_worker.BoundedWorker", "-w", "1"]
        command += [
            "-b",
            f"127.0.0.1:{self.port}",
            "--graceful-timeout",
            "3",
            "--no-control-socket",
        ]
        self.start(
            "web",
            [sys.executable, "-m", *command, "portal.asgi:application"],
            self.environment(),
        )

    def start_worker(self, extra: Mapping[str, str] | None = None) -> None:
        """Start the worker with its clock; it listens some seconds later."""
        quiet = [
            "--without-mingle",
            "--without-gossip",
            "--without-heartbeat",
            "-l",
            "WARNING",
        ]
        command = ["celery", "-A", "portal.celery", "worker", "-B", "-c", "2", *quiet]
        self.start(
            "worker",
            [sys.executable, "-m", *command],
            self.environment() | dict(extra or {}),
        )

    def start_watcher(self) -> None:
        """Start what copies the work on the clusters; a page says so until it has."""
        self.start(
            "watcher",
            [sys.executable, "manage.py", "watch_clusters"],
            self.environment(),
        )

    def start_hub(self) -> None:
        """Start a real JupyterHub for the notebooks of one cluster; the first time it is installed, for minutes."""
        command = [sys.executable, "-m", "sandbox.jupyterhub", "--cluster", HUB_CLUSTER]
        command += [
            "--sandbox",
            str(self.data / "sandbox"),
            "--data",
            str(self.hub),
            "--portal",
            self.url,
        ]
        command += [
            "--port",
            str(self.hub_ports["api"]),
            "--port-browser",
            str(self.hub_ports["browser"]),
        ]
        self.start("hub", command, {})

    def wait_hub(self) -> None:
        """Wait until the hub answers."""
        self.wait(
            "hub",
            lambda: b"jupyterhub ready" in self.log("hub").read_bytes(),
            seconds=HUB_SECONDS,
        )

    def connect_hub(self) -> None:
        """Wait until the hub answers, and tell the portal and the hub of each other."""
        self.wait_hub()
        where = ["--address", self.hub_address, "--public-address", self.hub_opened_at]
        self.manage(
            "connect_demo_hub", HUB_CLUSTER, *where, "--key-file", str(self.hub / "key")
        )

    def start_worker_and_web(self) -> None:
        """Start both side by side, and the watcher."""
        self.start_worker()
        self.start_web()
        self.start_watcher()

    def wait_ready(self) -> None:
        """Wait until the web server answers and the worker listens, which start side by side."""
        self.wait("web", lambda: requests.get(f"{self.url}/readyz", timeout=2).ok)
        self.wait(
            "worker", lambda: b'"worker ready"' in self.log("worker").read_bytes()
        )

    def manage(self, *command: str) -> None:
        """Run a management command to its end; raises DemoFailed with its last lines."""
        done = subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=ROOT,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise DemoFailed(
                f"manage.py {' '.join(command)} failed:\n{done.stderr[-2000:]}"
            )

    def environment(self) -> dict[str, str]:
        """The portal's environment: its real connectors, pointed at the sandbox."""
        entra, notices, azure = (
            self.sandbox[part] for part in ("entra", "notices", "azure")
        )
        values = {
            "SECRET_KEY": self._kept("secret-key"),
            "METRICS_TOKEN": self._kept("metrics-token"),
            "DEMO": "true",
            "PUBLIC_URL": self.url,
            "DATA_DIR": str(self.data),
            "KUBECONFIG_DIR": str(self.data / "sandbox"),
            "HUB_CREDENTIALS_DIR": str(self.hub),
            "HUB_HOSTS_ALLOWED": json.dumps(
                [f"127.0.0.1:{port}" for port in self.hub_ports.values()]
            ),
            "GIT_LOCAL_DIR": str(self.data / "git"),
            "GIT_AUTHOR": "Quartermaster <quartermaster@example.com>",
            "DATABASE_URL": f"sqlite://{self.data / 'portal.sqlite3'}",
            "BROKER_URL": f"filesystem://{self.data / 'broker'}",
            "CACHE_URL": f"file://{self.data / 'cache'}",
            "ENTRA_AUTHORITY": entra["authority"],
            "ENTRA_TENANT_ID": entra["tenant_id"],
            "ENTRA_CLIENT_ID": entra["client_id"],
            "ENTRA_CLIENT_SECRET": entra["client_secret"],
            "GRAPH_URL": entra["graph"],
            "SIGN_IN_ORIGIN": entra.get("sign_in", ""),
            "CA_FILE": str(self.data / "sandbox" / "ca.pem"),
            "AZURE_SUBSCRIPTION_ID": azure["subscription_id"],
            "AZURE_RESOURCE_GROUP": azure["resource_group"],
            "AZURE_REGISTRY": azure["registry"],
            "AZURE_TENANT_ID": azure["tenant_id"],
            "AZURE_CREDENTIAL": "client_secret",
            "AZURE_CLIENT_ID": azure["client_id"],
            "AZURE_CLIENT_SECRET": azure["client_secret"],
            "AZURE_ARM_URL": azure["arm"],
            "AZURE_AUTHORITY": azure["authority"],
            "AZURE_PRICES_URL": azure["prices"],
            "SIGN_IN_RATE": "600/min",
            "MAIL_HOST": notices["smtp_host"],
            "MAIL_PORT": notices["smtp_port"],
            "MAIL_TLS": "none",
            "MAIL_FROM": "Quartermaster <quartermaster@example.com>",
            "WEBHOOK_HOSTS_ALLOWED": json.dumps([notices["webhook_host"]]),
            "WEBHOOK_RECEIVERS": json.dumps([notices["webhook_host"]]),
            "ROLE_GROUPS": json.dumps(
                {
                    PLATFORM_LEADS: "platform_lead",
                    LEADERSHIP: "engineering_leadership",
                    AUDITORS: "auditor",
                }
            ),
        }
        values |= self.settings
        return os.environ | {f"QM_{name}": value for name, value in values.items()}

    def start(self, name: str, command: list[str], env: Mapping[str, str]) -> None:
        """Start a process of this demo with a log file of its name, in a group of its own."""
        self.log(name).parent.mkdir(parents=True, exist_ok=True)
        with self.log(name).open("wb") as log:
            self.running[name] = subprocess.Popen(
                command,
                cwd=ROOT,
                env=os.environ | dict(env),
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def wait(self, name: str, ready: Any, *, seconds: float = START_SECONDS) -> None:
        """Wait until a process is ready; raises DemoFailed when it ends or takes too long."""
        deadline, process = time.monotonic() + seconds, self.running[name]
        while time.monotonic() < deadline:
            if process.poll() is not None:
                break
            with suppress(requests.RequestException, OSError):
                if ready():
                    return
            time.sleep(0.05)
        raise DemoFailed(
            f"{name} did not start. Its log:\n{self.log(name).read_text(errors='replace')[-2000:]}"
        )

    def log(self, name: str) -> Path:
        """A process's log file."""
        return self.data / "logs" / f"{name}.log"

    def tails(self) -> str:
        """The last lines of every log, for when something failed."""
        logs = sorted((self.data / "logs").glob("*.log"))
        return "\n".join(
            f"--- {log.name}\n{log.read_text(errors='replace')[-1500:]}" for log in logs
        )

    def dead(self) -> str:
        """The name of a process that has ended by itself; empty while all run. A demo goes on without its hub."""
        ended = (
            name
            for name, process in list(self.running.items())
            if process.poll() is not None
        )
        return next((name for name in ended if name != "hub"), "")

    def kill(self, name: str) -> None:
        """End a process and its children at once, as a crash would."""
        process = self.running.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self) -> None:
        """End every process, newest first, and wait for them."""
        for name in reversed(list(self.running)):
            process = self.running.pop(name)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _kept(self, name: str) -> str:
        """A random text that stays the same from one start of the demo to the next."""
        path = self.data / name
        if not path.exists():
            path.write_text(secrets.token_urlsafe(48))
            path.chmod(0o600)
        return path.read_text()
