"""What happened around the recorded steps without being written down."""

from collections.abc import Mapping
from typing import Any

from sandbox.kubernetes.kinds import builtin
from tests.recordings.replaying import Hook, Player, namespace, steps_of

_LIST = "/api/v1/namespaces/qm-t-list/configmaps"
_DELETE = "/api/v1/namespaces/qm-t-del"
_RANGES = ("cpu", "gpumax", "gpudef", "gpuzero", "pod")
NODE = builtin("v1", "Node")
_HOLD = "quartermaster.example.com/hold"


def _golden(player: Player) -> None:
    for step in steps_of("02a-ssa-golden"):
        player.play(step)


def _golden_and_semantics(player: Player) -> None:
    _golden(player)
    for step in steps_of("02b-ssa-semantics"):
        player.play(step)


def _listed(player: Player, number: int, tenancy: str) -> None:
    labels = {"n": str(number), "quartermaster.example.com/tenancy": tenancy}
    _config_map(player, f"c{number}", {"labels": labels}, {"i": str(number)})


def _config_map(
    player: Player, name: str, metadata: dict[str, Any], data: dict[str, str]
) -> None:
    body = {"metadata": {"name": name, **metadata}, "data": data}
    answer = player.send(
        "admin",
        "POST",
        _LIST,
        {"fieldManager": "quartermaster"},
        {"content-type": "application/json"},
        body,
    )
    if answer.status != 201:
        raise AssertionError(answer.text)


def _fill_list(player: Player) -> None:
    for number in range(5):
        _listed(player, number, "solaris" if number < 3 else "tantalus")


def _patch(player: Player, path: str, body: Any) -> None:
    query, headers = (
        {"fieldManager": "quartermaster"},
        {"content-type": "application/merge-patch+json"},
    )
    answer = player.send("admin", "PATCH", path, query, headers, body)
    if answer.status != 200:
        raise AssertionError(answer.text)


def _life_of_w(player: Player) -> None:
    _config_map(player, "w", {"labels": {"n": "w"}}, {"i": "1"})
    _patch(player, f"{_LIST}/w", {"data": {"i": "2"}})
    player.admin("DELETE", f"{_LIST}/w")


def _label_of_c4(player: Player) -> None:
    _patch(player, f"{_LIST}/c4", {"metadata": {"labels": {"n": "x"}}})
    _patch(player, f"{_LIST}/c4", {"metadata": {"labels": {"n": "4"}}})


def _hold_in_life(player: Player) -> None:
    metadata = {"name": "held", "finalizers": [_HOLD]}
    player.admin(
        "POST", "/api/v1/namespaces/qm-t-life/configmaps", {"metadata": metadata}
    )


def _release_life(player: Player) -> None:
    path = "/api/v1/namespaces/qm-t-life/configmaps/held"
    body = {"metadata": {"finalizers": None}}
    player.admin("PATCH", path, body, "application/merge-patch+json")
    player.settle()


def _job(player: Player, name: str) -> None:
    amounts = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
    container = {
        "name": "main",
        "image": "registry.example.com/train:1",
        "command": ["python", "train.py"],
        "resources": {"requests": amounts, "limits": amounts},
    }
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    spec = {"completions": 2, "parallelism": 2, "backoffLimit": 0, "template": template}
    body = {"metadata": {"name": name}, "spec": spec}
    player.admin("POST", "/apis/batch/v1/namespaces/qm-t-del/jobs", body)


def _to_delete(player: Player) -> None:
    namespace(player, "qm-t-del")
    for name in ("orphan-default", "background", "background-body", "foreground"):
        _job(player, name)
    player.admin("POST", f"{_DELETE}/configmaps", {"metadata": {"name": "c"}})


def _small_things(player: Player) -> None:
    player.admin("POST", f"{_DELETE}/serviceaccounts", {"metadata": {"name": "sa1"}})
    quota = {"metadata": {"name": "q1"}, "spec": {"hard": {"count/secrets": "9"}}}
    player.admin("POST", f"{_DELETE}/resourcequotas", quota)
    resources = {"requests": {"storage": "1Gi"}}
    claim = {
        "metadata": {"name": "d1"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources},
    }
    player.admin("POST", f"{_DELETE}/persistentvolumeclaims", claim)
    for number in range(3):
        metadata = {"name": f"dc{number}", "labels": {"x": "y"}}
        player.admin("POST", f"{_DELETE}/configmaps", {"metadata": metadata})
    player.admin(
        "POST",
        f"{_DELETE}/configmaps",
        {"metadata": {"name": "fin", "finalizers": [_HOLD]}},
    )


def _end_of_j1(player: Player) -> None:
    player.admin(
        "DELETE",
        "/apis/batch/v1/namespaces/qm-t-quota/jobs/j1?propagationPolicy=Background",
    )


def _first_page(player: Player, version: str, token: str) -> None:
    namespace(player, "qm-t-list")
    _fill_list(player)
    metadata = player.admin("GET", f"{_LIST}?limit=2")["metadata"]
    player.translate(version, metadata["resourceVersion"])
    player.translate(token, metadata["continue"])


def _bookmarks(player: Player) -> None:
    token = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTgzNiwic3RhcnQiOiIvYzFcdTAwMDAifQ"
    _first_page(player, "1836", token)


def _expired(player: Player) -> None:
    token = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MjM1OCwic3RhcnQiOiIvYzFcdTAwMDAifQ"
    _first_page(player, "2358", token)
    _patch(player, f"{_LIST}/c3", {"data": {"i": "33"}})
    _compact(player)
    player.admin("POST", "/sandbox/restart")
    # It was recorded some seconds later, when the server had its caches.
    player.send("admin", "GET", "/apis/kueue.x-k8s.io/v1beta2/workloads")


def _compact(player: Player) -> None:
    player.admin("POST", "/sandbox/compact")


def _page_of_ten(player: Player) -> None:
    """Ten ConfigMaps, the first page of their list, and an etcd that is compacted after it."""
    where = "/api/v1/namespaces/rec-compact/configmaps"
    player.admin("POST", "/api/v1/namespaces", {"metadata": {"name": "rec-compact"}})
    for number in range(10):
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"c{number}"},
            "data": {"a": "1"},
        }
        player.admin(
            "PATCH",
            f"{where}/c{number}?fieldManager=quartermaster",
            body,
            "application/apply-patch+yaml",
        )
    metadata = player.admin("GET", f"{where}?limit=2")["metadata"]
    token = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Njk1Mywic3RhcnQiOiIvYzFcdTAwMDAifQ"
    player.translate("6953", metadata["resourceVersion"])
    player.translate(token, metadata["continue"])
    flavor = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "quartermaster-cpu"},
    }
    player.admin("POST", "/apis/kueue.x-k8s.io/v1beta2/resourceflavors", flavor)
    _compact(player)


def set_nodes(player: Player) -> None:
    """The three nodes of the recorded cluster."""
    for item in steps_of("12-nodes")[0]["response"]["body"]["items"]:
        player.cluster.store.put(NODE, {"apiVersion": "v1", "kind": "Node", **item})


def _in(*names: str) -> Hook:
    def make(player: Player) -> None:
        for name in names:
            namespace(player, name)

    return make


HOOKS: Mapping[str, Mapping[str, Hook]] = {
    "02b-ssa-semantics": {"dryrun-create": _golden},
    "02c-ssa-refusals": {"no-fieldmanager": _golden_and_semantics},
    "03-list-watch": {
        "list-empty": _in("qm-t-list"),
        "list": _fill_list,
        "watch-from-list": _life_of_w,
        "watch-selector-leaves": _label_of_c4,
    },
    "03b-watch-bookmark": {
        "watch-bookmark": _bookmarks,
        "list-continue-compacted": _compact,
    },
    "03c-expired": {"list-continue-expired": _expired},
    "12-nodes": {"list": set_nodes},
    "04-namespace-life": {
        "delete": _hold_in_life,
        "terminating-conditions": lambda player: player.settle(),
        "gone": _release_life,
    },
    "05-resourcequota": {
        "create": _in("qm-t-quota"),
        "status-after-delete": _end_of_j1,
    },
    "06-limitrange": {"limitrange--cpu": _in(*(f"qm-t-lr-{name}" for name in _RANGES))},
    "07-rbac": {"bad-token": _in("qm-t-rbac")},
    "08-delete": {
        "orphan-default-before": _to_delete,
        "delete-serviceaccount": _small_things,
    },
    "20-drift-holes": {"continue-after-compaction": _page_of_ten},
    "09-kueue-objects": {"clusterqueue-before-flavor": _in("qm-t-alpha", "qm-t-beta")},
}
