"""Watches through the portal's own connector: nothing is missed between a snapshot and what follows it."""

import pytest

from connectors.errors import PermanentError, TemporaryError
from connectors.kubernetes import Cluster
from tests.contract.conftest import Serving

POD = ("v1", "Pod")
CONFIG_MAP = ("v1", "ConfigMap")


def config_map(namespace: str, **data: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "demo", "namespace": namespace},
        "data": data,
    }


def test_what_happens_after_a_snapshot_is_told_in_order(
    admin: Cluster, namespace: str
) -> None:
    found, version = admin.snapshot(CONFIG_MAP)
    assert ("demo", namespace) not in {
        (each["metadata"]["name"], each["metadata"]["namespace"]) for each in found
    }
    admin.apply(config_map(namespace, a="1"))
    admin.apply(config_map(namespace, a="2"))
    admin.delete(CONFIG_MAP, "demo", namespace)
    said = [
        (kind, each["kind"], each["data"])
        for kind, each in admin.watch(CONFIG_MAP, since=version, seconds=1)
        if each["metadata"].get("namespace") == namespace
        and each["metadata"]["name"] == "demo"
    ]
    assert said == [
        ("ADDED", "ConfigMap", {"a": "1"}),
        ("MODIFIED", "ConfigMap", {"a": "2"}),
        ("DELETED", "ConfigMap", {"a": "2"}),
    ]


def test_a_watch_says_before_its_end_how_far_it_came(
    admin: Cluster, namespace: str
) -> None:
    _, version = admin.snapshot(POD)
    # Something else has happened meanwhile: the version goes on without an object of this kind.
    admin.apply(config_map(namespace, a="1"))
    kinds = [kind for kind, _ in admin.watch(POD, since=version, seconds=4)]
    assert "BOOKMARK" in kinds


def test_a_version_that_the_server_has_forgotten_is_expired(
    admin: Cluster, sandbox: Serving, namespace: str
) -> None:
    _, version = admin.snapshot(CONFIG_MAP)
    admin.apply(config_map(namespace, a="1"))
    # The server forgets what came before now, as after a restart.
    sandbox.cluster.store.begin_caching()
    with pytest.raises(PermanentError) as caught:
        list(admin.watch(CONFIG_MAP, since=version, seconds=1))
    assert caught.value.code == "expired"


def test_a_line_that_is_cut_and_a_watch_that_is_refused_are_told_apart(
    admin: Cluster, sandbox: Serving
) -> None:
    _, version = admin.snapshot(CONFIG_MAP)
    where = {"match": {"path_regex": "configmaps"}, "times": 1}
    sandbox.cluster.faults.add({**where, "status": 503, "body": "{}"})
    with pytest.raises(TemporaryError):
        list(admin.watch(CONFIG_MAP, since=version, seconds=1))
    sandbox.cluster.faults.add({**where, "status": 200, "body": '{"type":"ADD'})
    # The end of a line that never came is no change.
    assert list(admin.watch(CONFIG_MAP, since=version, seconds=1)) == []
    sandbox.cluster.faults.add({**where, "status": 200, "body": '{"type":"ADD\n'})
    with pytest.raises(TemporaryError, match="cut or no JSON"):
        list(admin.watch(CONFIG_MAP, since=version, seconds=1))
