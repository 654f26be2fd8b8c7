"""The whole product on one machine: `make demo`. Ctrl-C ends all of it."""

import argparse
import json
import signal
import sys
import threading
import time
from itertools import groupby
from pathlib import Path

import yaml

from connectors.kubernetes import Cluster
from scripts import demo_data
from scripts.demo_processes import ROOT, Demo, DemoFailed, is_free
from scripts.progress import Say, follow, print_line, silent

PEOPLE = (
    ("Ada Okafor", "data scientist: brings teams on board, asks for GPUs"),
    ("Priya Raman", "platform lead: decides 3 GPUs and more, runs the clusters"),
    ("Elena Petrova", "engineering leadership: decides 8 GPUs and more"),
    ("Mallory Finch", "data scientist of another team: sees nothing of Ada's"),
    ("Sam Achebe", "auditor: sees everything, changes nothing"),
)


MIGRATIONS = sorted(ROOT.glob("*/migrations/[0-9]*.py"))
# What docs/how-to/add-a-cluster.md has an administrator allow, for the portal's user of the sandbox.
MONITORING = """
apiVersion: v1
kind: Namespace
metadata: {name: monitoring}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: quartermaster-metrics, namespace: monitoring}
rules:
  - apiGroups: [""]
    resources: [services/proxy]
    resourceNames: ["prometheus-operated:9090"]
    verbs: [get]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: quartermaster-metrics, namespace: monitoring}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: quartermaster}]
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: quartermaster-metrics}
"""
# While the hub is installed, nobody waits at the terminal.
NOTEBOOKS_QUIET_SECONDS = 20.0


def main() -> int:
    """Start everything, say who can sign in, and wait for Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--data", type=Path, default=ROOT / "var" / "demo")
    parser.add_argument(
        "--git",
        action="store_true",
        help="add a cluster that a Git repository is followed for",
    )
    options = parser.parse_args()
    if not is_free(options.port):
        sys.stderr.write(
            f"Port {options.port} is taken. Try: make demo PORT={options.port + 1}\n"
        )
        return 1
    aside = demo_data.put_aside(options.data.resolve(), MIGRATIONS)
    if aside is not None:
        print_line(
            f"  The data of the last demo was made by another version: it is in {aside} now, and this demo begins anew."
        )
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    demo = Demo(options.data.resolve(), options.port)
    try:
        started = time.monotonic()
        start(demo, by_git=options.git, say=print_line)
        announce(demo, time.monotonic() - started)
        if options.git:
            print(
                f"  Inference, West US follows a repository:  git -C {demo.repository()} log --stat main\n",
                flush=True,
            )
        notebooks = threading.Thread(
            target=add_notebooks, args=(demo, stop), daemon=True
        )
        notebooks.start()
        while not stop.wait(1):
            if demo.dead():
                raise DemoFailed(
                    f"{demo.dead()} has ended. Its log: {demo.log(demo.dead())}"
                )
    except DemoFailed as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    finally:
        demo.stop()
    return 0


def start(demo: Demo, *, by_git: bool = False, say: Say = silent) -> None:
    """Bring a demo up: sandbox, its clusters made ready, database, sample teams, then worker and web at once.

    `say` is told which step of how many begins, and while a step takes long, that it goes on.
    """

    def make_database() -> None:
        demo.manage("migrate", "-v", "0")
        demo_data.note_migrations(demo.data, MIGRATIONS)

    seed = ["seed_demo", *(["--git", str(demo.repository())] if by_git else [])]
    follow(
        [
            ("the sandbox: clusters, directory, mailbox", demo.start_sandbox),
            (
                "the clusters get the product's roles and policies",
                lambda: prepare_clusters(demo),
            ),
            ("the database", make_database),
            ("sample people, teams, prices", lambda: demo.manage(*seed)),
            ("what services answer", lambda: serve(demo)),
            ("the worker and the web server", demo.start_worker_and_web),
            ("both answer", demo.wait_ready),
        ],
        say=say,
    )


def add_notebooks(demo: Demo, stop: threading.Event) -> None:
    """Bring a JupyterHub up beside a demo that runs already; where that does not work, say why: all else goes on."""
    try:
        follow(
            [
                (
                    "JupyterHub for notebooks (the first time it is installed: some two minutes)",
                    demo.start_hub,
                ),
                (
                    "JupyterHub answers, and the portal and it know each other",
                    demo.connect_hub,
                ),
            ],
            say=print_line,
            quiet=NOTEBOOKS_QUIET_SECONDS,
        )
    except DemoFailed as failure:
        demo.running.pop("hub", None)
        if not stop.is_set():
            print_line(f"  Notebooks cannot be launched in this demo. {failure}")
        return
    print_line(
        f"\n  Notebooks can be launched now, from the page of a team. JupyterHub: {demo.hub_opened_at}\n"
    )


def prepare_clusters(demo: Demo) -> None:
    """Make each cluster of the sandbox ready."""
    for cluster in demo.sandbox["kubernetes"].values():
        prepare_cluster(cluster["admin_kubeconfig"])


def prepare_cluster(admin_kubeconfig: str) -> None:
    """What an administrator does once per cluster: apply the product's roles from deploy/kubernetes."""
    client = Cluster.from_kubeconfig(admin_kubeconfig)
    for path in sorted((ROOT / "deploy" / "kubernetes").glob("*.yaml")):
        for manifest in yaml.safe_load_all(path.read_text()):
            # Under a name of their own: what the portal has written to is the portal's, or a finding (I9).
            client.apply(manifest, manager="kubectl")
    client.close()


def serve(demo: Demo) -> None:
    """Have the Prometheus of the sandbox tell of the sample services, and let the portal ask it."""
    said = json.loads((demo.data / "traffic.json").read_text())
    for name, each in groupby(said, key=lambda one: one.pop("cluster")):
        admin = demo.sandbox["kubernetes"][name]["admin_kubeconfig"]
        client = Cluster.from_kubeconfig(admin)
        for manifest in yaml.safe_load_all(MONITORING):
            client.apply(manifest, manager="kubectl")
        for one in each:
            client._json("POST", "/sandbox/traffic", body=one)
        client.close()


def announce(demo: Demo, seconds: float) -> None:
    """Print where it is and who can sign in."""
    lines = "\n".join(f"    {name:<16} {does}" for name, does in PEOPLE)
    post = demo.sandbox["notices"]
    print(
        f"\n  Quartermaster is ready after {seconds:.1f} s:  {demo.url}\n\n"
        f"  Sign in as one of the sample people (no password):\n{lines}\n\n"
        f"  Mail and cards arrive at:  {post['inbox']}\n"
        f"  Channels to try (Settings, Channels):\n    Teams  {post['teams']}\n    Slack  {post['slack']}\n"
        f"    a webhook's receiver  {post['webhook']}\n\n"
        f"  Logs: {demo.data / 'logs'}   Ctrl-C ends everything; the data stays for next time.\n",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
