"""What the connector makes of a server in trouble; only the sandbox can be told to be."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from connectors.errors import PermanentError, TemporaryError
from connectors.kubernetes import Cluster
from connectors.patience import MOST_TRIES
from tests.contract.conftest import Serving, kubeconfig
from tests.contract.raw import Raw, eventually

NAMESPACE, QUEUE = ("v1", "Namespace"), ("kueue.x-k8s.io/v1beta2", "ClusterQueue")
RBAC = "rbac.authorization.k8s.io"
WEBHOOK_DOWN = (
    '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Internal error occurred: failed '
    'calling webhook \\"mjob.kb.io\\": connect: connection refused","reason":"InternalError","code":500}'
)


@pytest.fixture
def faults(sandbox: Serving, raw: Raw) -> Iterator[Raw]:
    """The switch for faults, off again at the end, when a server that was started anew has filled its caches, too."""
    yield raw
    assert raw.send("DELETE", "/sandbox/faults")[0] == 200
    sandbox.cluster.initializing.clear()


def set_fault(raw: Raw, **fault: Any) -> None:
    status, body = raw.send(
        "POST", "/sandbox/faults", {"match": {"path_regex": "^/api"}, **fault}
    )
    assert status == 201, body


def test_a_busy_server_says_when_to_come_back(faults: Raw, admin: Cluster) -> None:
    set_fault(faults, status=429, retry_after=7)
    with pytest.raises(TemporaryError, match="Too many requests") as caught:
        admin.list(NAMESPACE)
    assert caught.value.retry_after == 7
    assert admin.list(NAMESPACE)


def test_a_server_that_fills_its_caches_says_when_to_come_back(
    faults: Raw, admin: Cluster
) -> None:
    assert faults.send("POST", "/sandbox/restart")[0] == 200
    with pytest.raises(
        TemporaryError, match=r"429 TooManyRequests: storage is \(re\)initializing"
    ) as caught:
        admin.list(QUEUE, label_selector="app=none")
    assert caught.value.retry_after == 1
    assert admin.list(QUEUE, label_selector="app=none") == []


def test_a_list_goes_on_while_the_server_remembers_it_and_is_read_again_when_not(
    faults: Raw, admin: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connectors.kubernetes.PAGE", 2)
    names = [f"c{number}" for number in range(5)]
    for name in names:
        admin.apply(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": namespace},
            }
        )
    names.append("kube-root-ca.crt")

    def read(*forget: str) -> list[str]:
        """A list during whose first page the server is told to forget."""
        pages = admin.pages(("v1", "ConfigMap"), namespace)
        found = [next(pages)]
        metadata = {
            "name": "c4",
            "namespace": namespace,
            "annotations": {"forgot": "-".join(forget)},
        }
        admin.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        for switch in forget:
            assert faults.send("POST", f"/sandbox/{switch}")[0] == 200
        return [one["metadata"]["name"] for one in [*found, *pages]]

    # etcd alone: the server has the list in its cache. The server alone: etcd still has it.
    assert read("compact") == names
    assert read("restart") == names
    with pytest.raises(
        PermanentError, match="too old to display a consistent list"
    ) as caught:
        read("compact", "restart")
    assert caught.value.code == "expired"
    assert [
        one["metadata"]["name"] for one in admin.list(("v1", "ConfigMap"), namespace)
    ] == names


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_failing_server_is_temporary(
    faults: Raw, admin: Cluster, status: int
) -> None:
    set_fault(faults, status=status)
    with pytest.raises(TemporaryError):
        admin.list(NAMESPACE)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_patient_client_asks_a_failing_server_again(
    faults: Raw, admin: Cluster, status: int
) -> None:
    patient = admin.patient(seconds=5)
    set_fault(faults, status=status, times=MOST_TRIES - 1)
    assert patient.list(NAMESPACE)
    set_fault(faults, status=status, times=MOST_TRIES)
    with pytest.raises(TemporaryError):
        patient.list(NAMESPACE)
    assert patient.list(NAMESPACE)


def test_a_patient_client_sends_nothing_again_that_could_happen_twice_or_was_answered(
    faults: Raw, admin: Cluster, prefix: str
) -> None:
    patient = admin.patient(seconds=5)
    new = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": prefix}}
    before = faults.send("GET", "/sandbox/stats")[1]
    for fault in (
        {"status": 503},
        {"status": 429, "retry_after": 1},
        {"status": 503, "retry_after": 1},
        {"status": 403},
    ):
        set_fault(faults, times=1, **fault)
        with pytest.raises((TemporaryError, PermanentError)):
            patient.create(new) if fault == {"status": 503} else patient.apply(new)
        assert patient.get(NAMESPACE, prefix) is None
    assert faults.send("GET", "/sandbox/stats")[1]["writes"] == before["writes"]


def test_a_webhook_that_is_down_is_temporary(faults: Raw, admin: Cluster) -> None:
    set_fault(faults, status=500, body=WEBHOOK_DOWN)
    with pytest.raises(TemporaryError, match="failed calling webhook"):
        admin.list(NAMESPACE)


def test_a_silent_server_is_given_up_on_and_carries_out_what_it_was_asked(
    faults: Raw, admin: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reads() -> int:
        return int(faults.send("GET", "/sandbox/stats")[1]["reads"])

    monkeypatch.setattr("connectors.kubernetes.TIMEOUT", (1.0, 0.2))
    set_fault(faults, hang=1.0)
    before = reads()
    with pytest.raises(TemporaryError, match="ReadTimeoutError"):
        admin.list(NAMESPACE)
    assert reads() == before
    # Its answer would otherwise come while the next test counts.
    eventually(lambda: reads() == before + 1)


def test_a_cut_answer_is_temporary_although_the_write_happened(
    faults: Raw, admin: Cluster, prefix: str
) -> None:
    set_fault(faults, drop_after=10)
    with pytest.raises(TemporaryError):
        admin.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": prefix}}
        )
    assert admin.get(NAMESPACE, prefix) is not None


def test_nobody_listening_is_temporary(sandbox: Serving, tmp_path: Path) -> None:
    path = kubeconfig(
        tmp_path / "none.yaml", "https://127.0.0.1:1", sandbox.ca, "admin"
    )
    with pytest.raises(TemporaryError):
        Cluster.from_kubeconfig(path).version()


def test_writes_are_counted_and_a_converged_apply_still_counts(
    sandbox: Serving, raw: Raw, admin: Cluster
) -> None:
    before = raw.send("GET", "/sandbox/stats")[1]
    admin.list(NAMESPACE)
    admin.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}},
        dry_run=True,
    )
    between = raw.send("GET", "/sandbox/stats")[1]
    assert (between["writes"], between["reads"]) == (
        before["writes"],
        before["reads"] + 1,
    )
    admin.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    )
    assert raw.send("GET", "/sandbox/stats")[1]["writes"] == before["writes"] + 1


def test_the_switches_need_an_administrator(sandbox: Serving, admin: Cluster) -> None:
    with urllib3.PoolManager(ca_certs=str(sandbox.ca)) as pool:
        stranger = Raw(pool, sandbox.server, "Bearer member")
        assert stranger.send("GET", "/sandbox/stats")[0] == 403


def test_a_provisioner_may_bind_only_what_it_was_told(
    sandbox: Serving, admin: Cluster, namespace: str
) -> None:
    rules = [
        {
            "apiGroups": [RBAC],
            "resources": ["rolebindings"],
            "verbs": ["get", "create", "patch"],
        },
        {
            "apiGroups": [RBAC],
            "resources": ["clusterroles"],
            "verbs": ["bind"],
            "resourceNames": ["view"],
        },
    ]
    role = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": namespace},
        "rules": rules,
    }
    admin.apply(role)
    bound = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": namespace},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": namespace},
        "subjects": [{"kind": "User", "apiGroup": RBAC, "name": "binder"}],
    }
    admin.apply(bound)
    provisioner = Cluster.from_kubeconfig(sandbox.config("binder"))
    members = {
        **bound,
        "kind": "RoleBinding",
        "metadata": {"name": "members", "namespace": namespace},
    }
    view = {
        **members,
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
    }
    assert provisioner.apply(view)["roleRef"]["name"] == "view"
    edit = {**members, "metadata": {"name": "more", "namespace": namespace}}
    edit["roleRef"] = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "edit"}
    with pytest.raises(
        PermanentError,
        match="is attempting to grant RBAC permissions not currently held",
    ) as caught:
        provisioner.apply(edit)
    assert caught.value.code == "escalation"
    with pytest.raises(PermanentError) as refused:
        provisioner.list(("v1", "Node"))
    assert refused.value.code == "forbidden"
    assert provisioner.can_i("delete", NAMESPACE) is False
