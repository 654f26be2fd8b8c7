"""What operators and members have at hand when they follow a how-to: tools, files, a cluster more, a hub."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from scripts.azure_job import Reserving
from scripts.catalogue_job import Catalogue
from scripts.demo import prepare_cluster
from scripts.documents import HOW_TOS, Given, kubectl, run
from scripts.expecting import expect
from scripts.git_host import GitHost
from scripts.main_job import CLUSTER, MainJob
from scripts.packages import ROOT

# In a demo the containers' commands are those of this checkout; nothing else of Docker is there, nor of a cluster that
# the portal itself runs on.
CONTAINER = """
manage() { (cd "$ROOT" && command "$PYTHON" "$@"); }
docker() {
    if [ "${*:1:4}" = "compose exec web python" ]; then shift 4; manage "$@"
    else echo "not in a demo: docker $*" >&2; return 1; fi
}
kubectl() {
    if [ "${*:1:6}" = "-n quartermaster-portal exec deployment/web -- python" ]; then shift 6; manage "$@"
    else command kubectl "$@"; fi
}
python() { manage "$@"; }
qm() { command "$PYTHON" -m qm "$@"; }
# pip without an index in place of pipx: what the client needs is here, and it is built from what is named.
pipx() {
    command "$PYTHON" -m pip "$1" -q --disable-pip-version-check --no-index --no-deps --no-build-isolation \\
        --upgrade --target "$PWD/installed" "${@:2}"
    qm() { PYTHONPATH="$PWD/installed" command "$PYTHON" "$PWD/installed/bin/qm" "$@"; }
}
"""
# What a clone has, as far as how-tos name it.
CLONE = ("deploy", "qm")
ADA = "00000000-0000-4000-8000-000000000001"
ELSEWHERE = "research-westus"
# The clusters of another API server: one that the fleet does not have yet, and one that was made anew.
WORLD = {
    "people": [],
    "groups": [],
    "clusters": [
        {
            "name": name,
            "region": "westus",
            "node_groups": [
                {"name": "system", "nodes": 1},
                {
                    "name": "a100",
                    "nodes": 2,
                    "gpus": 8,
                    "accelerator": "nvidia-a100",
                    "instance_type": "Standard_ND96amsr_A100_v4",
                    "cpu": 96,
                    "memory_mib": 1945600,
                },
            ],
        }
        for name in (ELSEWHERE, CLUSTER)
    ],
}


# What the texts name in place of a reader's own.
LEADS = '-H "Authorization: Bearer $TOKEN"'
RESERVATION = f'curl -s "$URL/reservations/?state=reserved" {LEADS}'
OTHER_IDENTITY = "3f0c6a3e-5f0c-4a43-8f5e-2d1f6c1f7f11"
HELPERS = f"""
field() {{ python3 -c "import json, sys; print(json.load(sys.stdin)$1)"; }}
reservation() {{ {RESERVATION} | field '["results"][0]["id"]'; }}
grant() {{ curl -s "$URL/reservations/$(reservation)/" {LEADS} | field '["grants"][0]["id"]'; }}
other_identity() {{
    until found=$(curl -s "$URL/clusters/{CLUSTER}/" {LEADS} | field '["identity_found"]') && [ -n "$found" ]; do
        sleep 0.5
    done
    echo "$found"
}}
"""


class HowTos:
    """The how-tos on a demo where a reader, its people signed in, has their tokens; `folder` is for their files."""

    def __init__(self, reader: MainJob, host: GitHost, folder: Path) -> None:
        self.reader, self.demo, self.host, self.folder = (
            reader,
            reader.demo,
            host,
            folder,
        )
        self.anchors, self.elsewhere = folder / "anchors", folder / "elsewhere"

    def steps(self) -> Iterator[tuple[str, Callable[[], str | None]]]:
        """Every step in order, in words."""
        yield (
            "two API servers more, which the portal does not know",
            self.start_elsewhere,
        )
        yield "an anchor of the audit log is written", self.leave_an_anchor
        for path in HOW_TOS:
            yield from self.before(path.stem)
            yield f"how-to {path.name}", partial(self.follow, path)
            if path.stem == "connect-a-jupyterhub":
                yield "JupyterHub begins, beside everything else", self.demo.start_hub
        # Both are looked at by the worker, in its own time.
        yield "what the cluster by Git should have waits in a pull request", self.pulled
        yield "the portal has reached the hub", self.reached

    def before(self, name: str) -> Iterator[tuple[str, Callable[[], str | None]]]:
        """What others have done before somebody follows a how-to."""
        if name == "reserve-capacity":
            yield (
                "three machines are asked for, approved and reserved",
                Reserving(self.reader).reserve,
            )
        if name == "train-from-the-command-line":
            yield "Vision, which has A100, is granted an H100", self.hold_one_more
        if name == "connect-a-hub":
            yield "JupyterHub answers", self.demo.wait_hub
        if name == "deliver-by-git":
            yield "a cluster is added that follows a repository", self.add_followed

    def hold_one_more(self) -> None:
        """A GPU of another kind, for the reader who goes on with other GPUs."""
        shop = Catalogue(self.reader, keys="how-tos")
        spec = {"flavor": f"{CLUSTER}/h100-80gb", "gpus": 1, "purpose": "training"}
        number = shop.ask("gpus", spec, team="vision", length=timedelta(days=1))
        shop.approve(number)
        shop.stage(number, "active", "ending_soon")

    def add_followed(self) -> None:
        """Pushed to, at first, where nobody has to merge."""
        added = {
            "name": "inference-westus",
            "title": "Inference, West US",
            "region": "westus",
        }
        added |= {
            "purpose": "inference",
            "delivery": "git",
            "git_url": str(self.demo.repository()),
        }
        answer = self.reader.call(
            "Priya", "POST", "/clusters/", added, key="followed-1"
        )
        expect(answer.status_code == 201, answer.text)

    def pulled(self) -> str:
        """On the host that the how-to names."""
        self.reader.until(
            "a pull request is open", lambda: self.host.hub.pulls, seconds=60
        )
        return str(self.host.hub.pulls[0]["title"])

    def reached(self) -> str:
        """At the address and by the token that the how-to names."""
        self.reader.until(
            "the hub has told its version", lambda: self.hub()["version"], seconds=60
        )
        return f"JupyterHub {self.hub()['version']}"

    def hub(self) -> dict[str, Any]:
        """The hub as platform leads see it."""
        found: dict[str, Any] = self.reader.call(
            "Priya", "GET", f"/hubs/{CLUSTER}/"
        ).json()
        return found

    def start_elsewhere(self) -> None:
        """A sandbox of its own; where nobody can use kubectl, its clusters are prepared as an administrator would."""
        self.elsewhere.mkdir(parents=True)
        world = self.elsewhere / "world.json"
        world.write_text(json.dumps(WORLD))
        self.demo.start_sandbox_at(
            self.elsewhere, "--world", str(world), name="elsewhere"
        )
        prepare_cluster(self.kubeconfig(CLUSTER, "-admin"))
        if kubectl():
            prepare_cluster(self.kubeconfig(ELSEWHERE, "-admin"))
            shutil.copy(
                self.kubeconfig(ELSEWHERE),
                self.demo.data / "sandbox" / f"{ELSEWHERE}.yaml",
            )

    def leave_an_anchor(self) -> None:
        """What the worker does once a day: the signed head of the audit log, in a folder."""
        self.anchors.mkdir(parents=True)
        anchor = "from portal.tasks import anchor_audit_log; anchor_audit_log()"
        env = self.demo.environment() | {"QM_ANCHOR_DIR": str(self.anchors)}
        subprocess.run(
            [sys.executable, "manage.py", "shell", "-v", "0", "-c", anchor],
            cwd=ROOT,
            env=env,
            check=True,
        )

    def follow(self, path: Path) -> str:
        """One how-to, in a folder of its own."""
        env = self.demo.environment() | {
            "QM_ANCHOR_DIR": str(self.anchors),
            "KUBECONFIG": self.administrator(path.stem),
            "KUBECONFIGS": str(self.demo.data / "sandbox"),
            "ELSEWHERE": str(self.elsewhere),
            "HUB": str(self.demo.hub),
        }
        folder, url, tokens = self.folder / path.stem, self.demo.url, self.reader.tokens
        given = at_hand(folder, url=url, tokens=tokens, env=env)
        return run(
            path,
            url=url,
            tokens=tokens,
            given=replace(given, examples=self.examples(folder)),
        )

    def administrator(self, name: str) -> str:
        """The kubeconfig of who prepares the cluster of a how-to."""
        if name == "connect-a-jupyterhub":
            return str(self.demo.sandbox["kubernetes"][CLUSTER]["admin_kubeconfig"])
        return self.kubeconfig(ELSEWHERE, "-admin")

    def kubeconfig(self, cluster: str, suffix: str = "") -> str:
        """A kubeconfig of the other sandbox."""
        return str(self.elsewhere / f"kubeconfig-{cluster}{suffix}.yaml")

    def examples(self, folder: Path) -> dict[str, str]:
        """What stands for what the texts name."""
        return {
            "https://hub.example.com": self.demo.hub_address,
            "2026-12-07T08:00": f"{datetime.now(UTC) + timedelta(days=2):%Y-%m-%dT%H:%M}",
            "0f3c2b1a-0000-4000-8000-000000000001": ADA,
            # A pod of the sandbox runs until somebody ends it, unless it is told to sleep.
            "-- --epochs 3": "-- --epochs 3 sleep 2",
            "-- --evaluate": "-- --evaluate sleep 2",
            "https://github.com/platform/fleet.git": self.host.repository,
            "https://gpus.example.com": self.demo.url,
            "git+https://git.example.com/platform/quartermaster.git": f"git+file://{folder}",
            "https://portal.example.com/api/v1": "$URL",
            "reservations/17/": "reservations/$(reservation)/",
            "allocations/231/": "allocations/$(grant)/",
            OTHER_IDENTITY: "'$(other_identity)'",
        }


def at_hand(
    folder: Path, *, url: str, tokens: Mapping[str, str], env: Mapping[str, str]
) -> Given:
    """What a platform lead has in a folder of their own: a clone, the portal's environment, tokens and the client."""
    clone(folder)
    given = {"URL": f"{url}/api/v1", "TOKEN": tokens["Priya"], "MEMBER": tokens["Ada"]}
    given |= {"ROOT": str(ROOT), "PYTHON": sys.executable, "HOME": str(folder)}
    # Of another team, who has asked for little: what is asked for lately counts, too.
    given["COLLEAGUE"] = tokens["Mallory"]
    # The client is a team's own, and its person has signed in with a token.
    given |= {"QM_URL": url, "QM_TOKEN": tokens["Ada"], "XDG_CONFIG_HOME": str(folder)}
    return Given(
        folder, {**env, **given}, CONTAINER + HELPERS, typed=f"{tokens['Ada']}\n"
    )


def clone(folder: Path) -> None:
    """What a clone has, as far as how-tos name it; a Git repository, as it is installed from."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / ".env.example", folder)
    for name in CLONE:
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
        )
    own = ("user.name=Ada", "user.email=ada@example.com", "commit.gpgsign=false")
    git = ["git", "-C", str(folder), *(part for one in own for part in ("-c", one))]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "A clone"]):
        subprocess.run([*git, *command], check=True)
