"""What the API server answers where a portal could break, through the portal's own connector."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from connectors.errors import PermanentError, TemporaryError
from connectors.kubernetes import Cluster
from tests.contract.raw import Raw, eventually

NAMESPACE = ("v1", "Namespace")
CONFIG_MAP = ("v1", "ConfigMap")
QUOTA = ("v1", "ResourceQuota")
RBAC = "rbac.authorization.k8s.io"


def config_map(namespace: str, name: str = "demo", **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


def binding(namespace: str, role: str, group: str = "0-0-0") -> dict[str, Any]:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "members", "namespace": namespace},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "Group", "apiGroup": RBAC, "name": group}],
    }


def quota(namespace: str, **hard: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "quota", "namespace": namespace},
        "spec": {"hard": {"requests.nvidia.com/gpu": "1", **hard}},
    }


def test_it_says_its_version(admin: Cluster) -> None:
    assert admin.version().startswith("v1.")


def test_a_missing_object_is_none(admin: Cluster, prefix: str) -> None:
    assert admin.get(NAMESPACE, prefix) is None


def test_a_second_apply_changes_nothing(admin: Cluster, namespace: str) -> None:
    first = admin.apply(config_map(namespace, a="1"))
    again = admin.apply(config_map(namespace, a="1"))
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_a_field_left_out_is_removed_when_nobody_else_owns_it(
    admin: Cluster, namespace: str
) -> None:
    admin.apply(config_map(namespace, a="1", b="2"))
    assert admin.apply(config_map(namespace, a="1"))["data"] == {"a": "1"}


def test_a_field_of_another_manager_is_a_conflict_unless_forced(
    admin: Cluster, raw: Raw, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/demo"
    assert raw.apply(path, config_map(namespace, a="1"), manager="portal")[0] == 201
    with pytest.raises(PermanentError) as caught:
        admin.apply(config_map(namespace, a="2"), force=False)
    assert caught.value.code == "conflict"
    assert (
        'Apply failed with 1 conflict: conflict with "portal": .data.a'
        in caught.value.message
    )
    assert admin.apply(config_map(namespace, a="2"))["data"] == {"a": "2"}


def test_two_managers_with_one_value_own_it_together(
    admin: Cluster, raw: Raw, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/demo"
    raw.apply(path, config_map(namespace, a="1"), manager="portal")
    admin.apply(config_map(namespace, a="1"), force=False)
    assert admin.apply(config_map(namespace, b="2"), force=False)["data"] == {
        "a": "1",
        "b": "2",
    }


def test_an_unknown_field_is_a_500_and_permanent(
    admin: Cluster, namespace: str
) -> None:
    with pytest.raises(PermanentError) as caught:
        admin.apply({**config_map(namespace), "dataa": {}})
    assert caught.value.code == "invalid"
    assert ".dataa: field not declared in schema" in caught.value.message


def test_an_unknown_field_in_a_strict_post_is_refused(
    admin: Cluster, namespace: str
) -> None:
    with pytest.raises(PermanentError) as caught:
        admin.create({**config_map(namespace), "bogus": 1})
    assert caught.value.code == "bad_request"
    assert 'strict decoding error: unknown field "bogus"' in caught.value.message


def test_managed_fields_in_the_body_are_refused(admin: Cluster, namespace: str) -> None:
    stored = admin.apply(config_map(namespace, a="1"))
    with pytest.raises(PermanentError, match=r"metadata\.managedFields must be nil"):
        admin.apply(stored)


def test_a_stale_resource_version_is_a_conflict(admin: Cluster, namespace: str) -> None:
    body = admin.apply(config_map(namespace, a="1"))
    stale = config_map(namespace, a="2")
    stale["metadata"]["resourceVersion"] = "1"
    with pytest.raises(PermanentError, match="the object has been modified") as caught:
        admin.apply(stale)
    assert caught.value.code == "conflict"
    assert body["data"] == {"a": "1"}


def test_an_apply_without_a_manager_is_refused(raw: Raw, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps/demo"
    status, body = raw.apply(path, config_map(namespace, a="1"), manager="")
    assert status == 422
    assert "fieldManager: Required value" in body["message"]


def test_a_role_reference_cannot_change(admin: Cluster, namespace: str) -> None:
    admin.apply(binding(namespace, "view"))
    with pytest.raises(PermanentError, match="cannot change roleRef") as caught:
        admin.apply(binding(namespace, "edit"))
    assert caught.value.code == "invalid"


def test_a_name_that_is_taken_is_said_so(admin: Cluster, namespace: str) -> None:
    admin.create(config_map(namespace))
    with pytest.raises(PermanentError) as caught:
        admin.create(config_map(namespace))
    assert caught.value.code == "already_exists"


def test_a_dry_run_stores_nothing(admin: Cluster, namespace: str) -> None:
    assert admin.apply(config_map(namespace, a="1"), dry_run=True)["data"] == {"a": "1"}
    assert admin.get(CONFIG_MAP, "demo", namespace) is None


def test_pages_come_together_as_one_list(
    admin: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        admin.apply(config_map(namespace, f"c{number}"))
    monkeypatch.setattr("connectors.kubernetes.PAGE", 2)
    names = [item["metadata"]["name"] for item in admin.list(CONFIG_MAP, namespace)]
    assert [name for name in names if name.startswith("c")] == [
        f"c{number}" for number in range(5)
    ]


def test_a_list_picks_by_label_and_names_the_kind(
    admin: Cluster, namespace: str
) -> None:
    labelled = config_map(namespace, "mine")
    labelled["metadata"]["labels"] = {"quartermaster.io/team": "nlp"}
    admin.apply(labelled)
    found = admin.list(
        CONFIG_MAP, namespace, label_selector="quartermaster.io/team=nlp"
    )
    assert [(item["kind"], item["metadata"]["name"]) for item in found] == [
        ("ConfigMap", "mine")
    ]


def test_a_quota_counts_pods_that_ask_for_gpus(admin: Cluster, namespace: str) -> None:
    admin.apply(quota(namespace))
    eventually(
        lambda: (
            "used" in ((admin.get(QUOTA, "quota", namespace) or {}).get("status") or {})
        )
    )
    resources = {"limits": {"nvidia.com/gpu": "2"}}
    container = {
        "name": "c",
        "image": "registry.example.com/none:1",
        "resources": resources,
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": namespace},
        "spec": {"containers": [container], "automountServiceAccountToken": False},
    }
    with pytest.raises(PermanentError, match="exceeded quota: quota") as caught:
        admin.create(pod)
    assert caught.value.code == "quota"


@pytest.mark.parametrize("amount", ["1.5", "1e30", "99999999999999999999", "8 "])
def test_the_server_accepts_strange_gpu_amounts(
    admin: Cluster, namespace: str, amount: str
) -> None:
    body = quota(namespace, **{"requests.nvidia.com/gpu": amount})
    assert admin.apply(body, dry_run=True)["kind"] == "ResourceQuota"


@pytest.mark.parametrize("amount", ["0x10", "８", "8; rm"])
def test_an_unreadable_amount_is_a_500_and_permanent(
    admin: Cluster, namespace: str, amount: str
) -> None:
    with pytest.raises(PermanentError, match="failed to convert new object") as caught:
        admin.apply(
            quota(namespace, **{"requests.nvidia.com/gpu": amount}), dry_run=True
        )
    assert caught.value.code == "invalid"


def test_a_negative_amount_is_invalid(admin: Cluster, namespace: str) -> None:
    with pytest.raises(
        PermanentError, match="must be greater than or equal to 0"
    ) as caught:
        admin.apply(quota(namespace, **{"requests.nvidia.com/gpu": "-1"}), dry_run=True)
    assert caught.value.code == "invalid"


@pytest.mark.parametrize("role", ["cluster-admin", "view"])
@pytest.mark.parametrize("group", ["system:masters", "system:authenticated"])
def test_the_server_lets_an_administrator_bind_anything(
    admin: Cluster, namespace: str, role: str, group: str
) -> None:
    assert (
        admin.apply(binding(namespace, role, group), dry_run=True)["kind"]
        == "RoleBinding"
    )


def test_a_group_without_a_name_is_invalid(admin: Cluster, namespace: str) -> None:
    with pytest.raises(PermanentError) as caught:
        admin.apply(binding(namespace, "view", ""), dry_run=True)
    assert caught.value.code == "invalid"


def test_the_server_lets_us_write_on_kube_system(admin: Cluster) -> None:
    labels = {
        "app.kubernetes.io/managed-by": "quartermaster",
        "pod-security.kubernetes.io/enforce": "privileged",
    }
    body = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "kube-system", "labels": labels},
    }
    assert (
        admin.apply(body, dry_run=True)["metadata"]["labels"][
            "app.kubernetes.io/managed-by"
        ]
        == "quartermaster"
    )


@pytest.mark.parametrize("name", ["Capital", "a_b", "a" * 64])
def test_a_bad_namespace_name_is_invalid(admin: Cluster, name: str) -> None:
    with pytest.raises(PermanentError) as caught:
        admin.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
            dry_run=True,
        )
    assert caught.value.code == "invalid"


@pytest.mark.parametrize("value", ["has space", "line\nbreak", "x" * 64])
def test_a_bad_label_is_invalid(admin: Cluster, namespace: str, value: str) -> None:
    body = config_map(namespace)
    body["metadata"]["labels"] = {"a": value}
    with pytest.raises(PermanentError) as caught:
        admin.apply(body, dry_run=True)
    assert caught.value.code == "invalid"


def test_a_huge_annotation_is_invalid(admin: Cluster, namespace: str) -> None:
    body = config_map(namespace)
    body["metadata"]["annotations"] = {"a": "x" * 300_000}
    with pytest.raises(PermanentError) as caught:
        admin.apply(body, dry_run=True)
    assert caught.value.code == "invalid"


def test_a_name_that_climbs_is_not_found(raw: Raw) -> None:
    assert raw.send("GET", "/api/v1/namespaces/default/configmaps/%2F..%2F")[0] == 404


def test_a_namespace_takes_its_content_along(
    admin: Cluster, raw: Raw, namespace: str
) -> None:
    held = config_map(namespace, "held")
    held["metadata"]["finalizers"] = ["quartermaster.io/hold"]
    admin.create(held)
    assert admin.delete(NAMESPACE, namespace) is True
    with pytest.raises(TemporaryError, match="because it is being terminated"):
        admin.apply(config_map(namespace, "late"))
    path = f"/api/v1/namespaces/{namespace}/configmaps/held"
    body = {"metadata": {"finalizers": None}}
    assert (
        raw.send("PATCH", path, body, content_type="application/merge-patch+json")[0]
        == 200
    )
    eventually(lambda: admin.get(NAMESPACE, namespace) is None)


def test_deleting_what_is_not_there_is_no_error(admin: Cluster, namespace: str) -> None:
    assert admin.delete(CONFIG_MAP, "none", namespace) is False


def test_a_token_nobody_knows_is_unauthorized(
    admin_config: Path, tmp_path: Path
) -> None:
    config = yaml.safe_load(admin_config.read_text())
    config["users"][0]["user"] = {"token": "nonsense"}
    path = tmp_path / "bad.yaml"
    path.write_text(yaml.safe_dump(config))
    with pytest.raises(PermanentError) as caught:
        Cluster.from_kubeconfig(path).list(NAMESPACE)
    assert caught.value.code == "unauthorized"


def test_an_administrator_may_and_is_told_so(admin: Cluster, namespace: str) -> None:
    assert admin.can_i("patch", NAMESPACE) is True
    assert admin.can_i("create", ("batch/v1", "Job"), namespace) is True
