"""Clusters and flavors over the API: platform leads add and change them, within what can be."""

from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from accounts.roles import Role
from audit.models import Event
from fleet.models import Cluster, Flavor
from tests import factories
from tests.calling import Caller

pytestmark = pytest.mark.django_db
CLUSTER = {
    "name": "dev-eastus",
    "title": "Development",
    "region": "eastus",
    "purpose": "development",
}


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: dev
clusters: [{name: dev, cluster: {server: "https://10.1.2.3:6443"}}]
users: [{name: portal, user: {token: secret}}]
contexts: [{name: dev, context: {cluster: dev, user: portal}}]
"""
NO_KUBECONFIGS = {
    "ca.pem": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
    "empty.yaml": "",
    "list.yaml": "[1, 2]\n",
    "half.yaml": "apiVersion: v1\nkind: Config\n",
    "broken.yaml": "a: [\n",
    "strings.yaml": "current-context: dev\nclusters: dev\nusers: dev\ncontexts: dev\n",
    "no-server.yaml": KUBECONFIG.replace("server:", "port:"),
    "no-address.yaml": KUBECONFIG.replace("https://10.1.2.3:6443", "none"),
    "bytes.yaml": "\x00\x01",
}


@pytest.fixture
def priya() -> Caller:
    """A platform lead."""
    return Caller(factories.person("Priya Raman", Role.PLATFORM_LEAD))


@pytest.fixture
def kubeconfigs(tmp_path: Path, settings: Settings) -> Path:
    """The folder of kubeconfigs, with one in it."""
    (tmp_path / "dev.yaml").write_text(KUBECONFIG)
    (tmp_path.parent / "outside.yaml").write_text(KUBECONFIG)
    settings.ENV = settings.ENV.model_copy(update={"kubeconfig_dir": tmp_path})
    return tmp_path


def flavor(on: str, **changed: Any) -> dict[str, Any]:
    """A kind of GPU to add."""
    usual = {
        "cluster": on,
        "name": "t4",
        "product": "T4",
        "memory_gb": 16,
        "gpus_per_node": 4,
        "price_per_gpu_hour": "0.53",
        "node_labels": {"accelerator": "nvidia-t4"},
        "node_taints": [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}],
    }
    return usual | changed


def test_a_cluster_is_added_and_changed(priya: Caller, kubeconfigs: Path) -> None:
    answer = priya.post("clusters/", CLUSTER | {"kubeconfig": "dev.yaml"})
    assert answer.status_code == 201, answer.content
    assert (answer["Location"], answer.json()["health"]) == (
        "/api/v1/clusters/dev-eastus/",
        "waiting",
    )
    changed = priya.patch(
        "clusters/dev-eastus/", {"title": "Notebooks", "enabled": False}
    )
    assert (changed.json()["title"], changed.json()["enabled"]) == ("Notebooks", False)
    kinds = list(Event.objects.order_by("seq").values_list("kind", flat=True))[-2:]
    assert kinds == ["cluster.added", "cluster.changed"]
    ada = Caller(factories.person("Ada"))
    assert ada.get("clusters/dev-eastus/").json()["kubeconfig"] is None
    assert priya.get("clusters/dev-eastus/").json()["kubeconfig"] == "dev.yaml"


def test_a_kubeconfig_is_a_plain_file_name_in_the_folder(
    priya: Caller, kubeconfigs: Path
) -> None:
    wrong = (
        "../outside.yaml",
        "/etc/passwd",
        "none.yaml",
        ".",
        "..",
        "dev.yaml/",
        "~/x",
        "https://10.0.0.1/",
        "file:///etc/passwd",
        "http://169.254.169.254/",
    )
    for name in wrong:
        answer = priya.post("clusters/", CLUSTER | {"kubeconfig": name})
        assert answer.status_code == 422, name
        assert answer.json()["errors"][0]["pointer"] == "/kubeconfig"
    assert not Cluster.objects.exists()


@pytest.mark.parametrize("name", NO_KUBECONFIGS)
def test_a_file_that_is_no_kubeconfig_is_refused_when_it_is_saved(
    priya: Caller, kubeconfigs: Path, name: str
) -> None:
    (kubeconfigs / name).write_text(NO_KUBECONFIGS[name])
    answer = priya.post("clusters/", CLUSTER | {"kubeconfig": name})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_kubeconfig")
    assert answer.json()["errors"][0]["pointer"] == "/kubeconfig"
    assert not Cluster.objects.exists()


def test_a_context_that_the_kubeconfig_does_not_have_is_refused(
    priya: Caller, kubeconfigs: Path
) -> None:
    answer = priya.post(
        "clusters/", CLUSTER | {"kubeconfig": "dev.yaml", "context": "prod"}
    )
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_kubeconfig")
    assert (
        priya.post("clusters/", CLUSTER | {"kubeconfig": "dev.yaml"}).status_code == 201
    )
    changed = priya.patch("clusters/dev-eastus/", {"context": "prod"})
    assert (changed.status_code, changed.json()["code"]) == (422, "bad_kubeconfig")


def test_names_are_dns_labels_and_taken_once(priya: Caller) -> None:
    for name in (
        "Dev",
        "dev_eastus",
        "-dev",
        "dev-",
        "1dev",
        "dév",
        "dev eastus",
        "x" * 41,
    ):
        assert priya.post("clusters/", CLUSTER | {"name": name}).status_code == 422, (
            name
        )
    assert priya.post("clusters/", CLUSTER).status_code == 201
    answer = priya.post("clusters/", CLUSTER)
    assert (answer.status_code, answer.json()["code"]) == (409, "name_taken")


def test_a_flavor_is_added_and_changed_and_keeps_its_name(priya: Caller) -> None:
    on = factories.cluster().name
    answer = priya.post("flavors/", flavor(on))
    assert answer.status_code == 201, answer.content
    path = answer["Location"]
    assert (answer.json()["price_per_gpu_hour"], answer.json()["free"]) == ("0.5300", 0)
    assert (
        priya.patch(path, {"price_per_gpu_hour": "0.6125"}).json()["price_per_gpu_hour"]
        == "0.6125"
    )
    doubted = priya.patch(path, {"price_per_gpu_hour": "6125"})
    assert (doubted.status_code, doubted.json()["code"]) == (422, "doubtful_price")
    meant = {"price_per_gpu_hour": "6125", "price_is_meant": True}
    assert priya.patch(path, meant).json()["price_per_gpu_hour"] == "6125.0000"
    for field in ("name", "cluster", "allocated", "id"):
        assert (
            priya.patch(path, {field: "x"}).json()["errors"][0]["code"]
            == "unknown_field"
        )
    assert priya.patch(path, {"gpus_total": 8}).json()["code"] == "counted"
    Cluster.objects.update(delivery="git")
    told = priya.patch(path, {"gpus_total": 8}).json()
    assert (told["gpus_total"], told["free"], told["gpus_seen_at"]) == (8, 8, None)
    assert priya.post("flavors/", flavor(on)).json()["code"] == "name_taken"
    assert priya.post("flavors/", flavor("nowhere")).status_code == 404


def test_what_no_node_can_be_is_refused(priya: Caller) -> None:
    on = factories.cluster().name
    wrong: list[dict[str, Any]] = [
        {"price_per_gpu_hour": "0"},
        {"price_per_gpu_hour": "-1"},
        {"price_per_gpu_hour": 0.53},
        {"price_per_gpu_hour": "NaN"},
        {"price_per_gpu_hour": "1e3"},
        {"price_per_gpu_hour": "99999999999"},
        {"gpus_per_node": 0},
        {"memory_gb": 10**20},
        {"capacity_type": "free"},
        {"is_offered": "yes"},
        {"node_labels": {"a b": "c"}},
        {"node_labels": {"a": "b c"}},
        {"node_labels": {"a": 1}},
        {"node_labels": []},
        {"node_taints": [{"key": "a"}]},
        {"node_taints": [{"key": "a", "effect": "Nothing"}]},
        {"node_taints": [{"key": "a", "effect": "NoSchedule", "x": 1}]},
    ]
    for changed in wrong:
        answer = priya.post("flavors/", flavor(on, **changed))
        assert answer.status_code == 422, changed
        assert answer.json()["errors"][0]["pointer"].startswith(
            f"/{next(iter(changed))}"
        ), answer.json()
    assert not Flavor.objects.exists()


def test_others_than_platform_leads_add_and_change_nothing() -> None:
    made = factories.flavor()
    before = Event.objects.count()
    for role in (
        Role.DATA_SCIENTIST,
        Role.TEAM_LEAD,
        Role.ENGINEERING_LEADERSHIP,
        Role.AUDITOR,
    ):
        caller = Caller(factories.person("", role))
        for answer in (
            caller.post("clusters/", CLUSTER),
            caller.patch(f"clusters/{made.cluster.name}/", {"enabled": False}),
            caller.post("flavors/", flavor(made.cluster.name)),
            caller.patch(f"flavors/{made.pk}/", {"is_offered": False}),
        ):
            assert (answer.status_code, answer.json()["code"]) == (
                403,
                "not_a_platform_lead",
            )
    assert Event.objects.filter(outcome="refused").count() == 16
    assert Event.objects.count() == before + 16 + 4  # each also made a token
