"""The live test as a command: it refuses what it cannot test, and one that is cut off cleans up and says so."""

import copy
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from sandbox.kubernetes.kinds import builtin
from scripts.live_test import main
from tests.contract.conftest import Serving
from tests.contract.raw import Raw
from tests.services.process import wait_until

FLAVOR = ("kueue.x-k8s.io/v1beta2", "ResourceFlavor")
DEPLOYMENT = builtin("apps/v1", "Deployment")


@pytest.fixture
def old_kueue(sandbox: Serving) -> Iterator[None]:
    """A release of Kueue on the cluster under test that is too old."""
    store = sandbox.cluster.store
    there = store.get(DEPLOYMENT, "kueue-system", "kueue-controller-manager")
    assert there is not None
    old = copy.deepcopy(dict(there))
    old["spec"]["template"]["spec"]["containers"][0]["image"] = (
        "registry.k8s.io/kueue/kueue:v0.15.3"
    )
    store.put(DEPLOYMENT, old)
    yield
    store.put(DEPLOYMENT, there)


def test_a_cluster_with_an_old_kueue_is_refused(
    sandbox: Serving, old_kueue: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--kubeconfig", str(sandbox.config("admin"))]) == 2
    said = "live test: this cluster cannot be tested: Kueue v0.15.3 is too old: the portal needs 0.16 or newer.\n"
    assert capsys.readouterr().err == said


def test_a_cluster_without_kueue_is_refused(
    sandbox: Serving, raw: Raw, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = {
        "match": {"path_regex": "^/apis/kueue.x-k8s.io"},
        "status": 404,
        "times": 1,
    }
    assert raw.send("POST", "/sandbox/faults", fault)[0] == 201
    assert main(["--kubeconfig", str(sandbox.config("admin"))]) == 2
    assert (
        "this cluster cannot be tested: Kueue is not installed: install 0.16 or newer."
        in capsys.readouterr().err
    )


@pytest.mark.long
@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"]
)
def test_one_that_is_cut_off_leaves_nothing_behind_and_says_what_it_did_not_reach(
    sandbox: Serving, number: signal.Signals
) -> None:
    config = str(sandbox.config("admin"))

    def left() -> list[str]:
        kinds = [
            ("v1", "Namespace"),
            ("kueue.x-k8s.io/v1beta2", "ClusterQueue"),
            ("kueue.x-k8s.io/v1beta2", "WorkloadPriorityClass"),
            FLAVOR,
        ]
        found = [
            one["metadata"]["name"]
            for ref in kinds
            for one in sandbox.cluster.store.objects(builtin(*ref))
        ]
        return sorted(name for name in found if name not in before)

    before: list[str] = []
    before = left()
    asked = [
        sys.executable,
        "-m",
        "scripts.live_test",
        "--kubeconfig",
        config,
        "--only",
        "test_main_job",
    ]
    process = subprocess.Popen(asked, stdout=subprocess.PIPE, text=True)
    wait_until(
        lambda: any(name.endswith("-gpu") for name in left()),
        what="a tenancy to be made",
        seconds=180,
    )
    process.send_signal(number)
    output, _ = process.communicate(timeout=180)
    assert process.returncode == 1
    assert left() == []
    assert "(the test was cut off)" in output
    assert "live test: nothing is left" in output
