"""The contract suite and the main job on a real cluster: `make live-test KUBECONFIG=…`; the sandbox without one.

Everything that is made has a name of this run's own, and is taken away at the end, on failure and Ctrl-C too. What
cannot be checked is said and counted.
"""

import argparse
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import yaml

from connectors.errors import ConnectorError
from connectors.kubernetes import Cluster
from provisioning.clusters import kueue
from scripts.demo_processes import ROOT
from scripts.live_cleaning import Left, clean


def main(arguments: list[str] | None = None) -> int:
    """0 when nothing failed and nothing was left behind, 1 otherwise, 2 for a cluster that cannot be tested."""
    asked = argparse.ArgumentParser(
        prog="python -m scripts.live_test", description=__doc__
    )
    asked.add_argument(
        "--kubeconfig",
        default="",
        help="an administrator's kubeconfig; the sandbox when empty",
    )
    asked.add_argument(
        "--context",
        default="",
        help="the context to use instead of the file's current one",
    )
    asked.add_argument(
        "--only", default="", help="run only tests whose name matches, as pytest's -k"
    )
    options = asked.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="quartermaster-live-") as folder:
        if not options.kubeconfig:
            print(
                "live test: no KUBECONFIG is given, so the sandbox is tested",
                flush=True,
            )
            return run({}, options.only)
        try:
            config = narrowed(
                Path(options.kubeconfig).expanduser(), options.context, Path(folder)
            )
            cluster = Cluster.from_kubeconfig(config)
            print(f"live test: {cluster.server}, {described(cluster)}", flush=True)
        except (ConnectorError, OSError, ValueError) as error:
            print(f"live test: this cluster cannot be tested: {error}", file=sys.stderr)
            return 2
        return on_cluster(cluster, config, Path(folder), options.only)


def on_cluster(cluster: Cluster, config: Path, folder: Path, only: str) -> int:
    """Test it under a prefix of this run's own and take away whatever is left under it."""
    prefix, made = f"qm-live-{secrets.token_hex(3)}", folder / "made"
    print(f"live test: everything is named {prefix}…", flush=True)
    # Whoever ends us otherwise means it no less, and somebody's cluster is cleaned up all the same.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    failed = run(
        {
            "QM_LIVE_KUBECONFIG": str(config),
            "QM_LIVE_PREFIX": prefix,
            "QM_LIVE_MADE": str(made),
        },
        only,
    )
    # From here on a second Ctrl-C would leave things behind on somebody's cluster.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    names = made.read_text().splitlines() if made.exists() else []
    left = clean(
        cluster,
        prefix,
        also=[
            (kind, name) for kind, _, name in (line.partition(" ") for line in names)
        ],
    )
    print(told(left), flush=True)
    return 1 if failed or left.stuck else 0


def run(extra: Mapping[str, str], only: str) -> int:
    """Run the suite in a process of its own; its exit code. Ctrl-C lets it end what it began, a second one does not."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.contract.telling",
        "-p",
        "no:randomly",
        "-q",
        "tests/contract",
        *(["-k", only] if only else []),
    ]
    environment = {
        name: value for name, value in os.environ.items() if name != "KUBECONFIG"
    }
    # In a session of its own, so that a terminal's Ctrl-C reaches it once, from here.
    process = subprocess.Popen(
        command, cwd=ROOT, env={**environment, **extra}, start_new_session=True
    )
    for number in (signal.SIGINT, signal.SIGKILL):
        try:
            return process.wait()
        except KeyboardInterrupt:
            print(
                "\nlive test: ending and cleaning up; once more to end at once",
                flush=True,
            )
            process.send_signal(number)
    return process.wait()


def narrowed(given: Path, context: str, folder: Path) -> Path:
    """The kubeconfig with this context as its current one, in a folder of the run's own.

    Raises ValueError for a context that is not there, OSError for a file that is not.
    """
    config = yaml.safe_load(given.read_text())
    if not isinstance(config, dict):
        raise ValueError(f"{given} is no kubeconfig.")  # noqa: TRY004
    names = [each["name"] for each in config.get("contexts") or []]
    if context and context not in names:
        raise ValueError(
            f"there is no context {context} in {given}; there are {', '.join(names) or 'none'}."
        )
    if context:
        config["current-context"] = context
    _make_absolute(config, given.parent.resolve())
    path = folder / "live.yaml"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path


def _make_absolute(config: dict[str, object], beside: Path) -> None:
    """Files that a kubeconfig names are looked for beside it."""
    for group, inner in (("clusters", "cluster"), ("users", "user")):
        for each in config.get(group) or []:  # type: ignore[attr-defined]
            for field in (
                "certificate-authority",
                "client-certificate",
                "client-key",
                "tokenFile",
            ):
                if field in (each.get(inner) or {}):
                    each[inner][field] = str(beside / each[inner][field])


def described(cluster: Cluster) -> str:
    """Its versions; raises ConnectorError for a cluster without a Kueue that we can work with."""
    version = kueue.installed(cluster)
    kueue.check(version)
    return f"Kubernetes {cluster.version()}, Kueue {version}"


def told(left: Left) -> str:
    """What cleaning up came to."""
    if left.stuck:
        return f"live test: still there after {left.seconds:.0f} s, please look: {', '.join(left.stuck)}"
    return (
        f"live test: nothing is left; {left.removed} objects were taken away at the end"
    )


if __name__ == "__main__":
    sys.exit(main())
