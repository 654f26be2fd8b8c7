"""Events as controllers leave them: counted ones of the control plane, and Kueue's, each a new one."""

import secrets
from datetime import UTC, datetime
from typing import Any

from sandbox.kubernetes.admission import NAMESPACES
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.kinds import builtin
from sandbox.kubernetes.statuses import write_new
from sandbox.kubernetes.store import Obj, Store

EVENT = builtin("v1", "Event")
COUNTED, KUBELET = "kube-controller-manager", "kubelet"
# Volcano's programs count their events as well.
VOLCANO_SCHEDULER, VOLCANO_CONTROLLERS = "vc-scheduler", "vc-controller-manager"
COUNTING = frozenset({COUNTED, KUBELET, VOLCANO_SCHEDULER, VOLCANO_CONTROLLERS})


def tell(
    store: Store,
    about: Obj,
    reason: str,
    message: str,
    *,
    by: str,
    manager: str = COUNTED,
    warning: bool = False,
    host: str = "",
) -> None:
    """Write an event down; what the control plane said before is counted up. None in a namespace that goes."""
    # What is said of nodes stands in this namespace.
    namespace = about["metadata"].get("namespace", "default")
    place = store.get(NAMESPACES, "", namespace)
    if place is None or "deletionTimestamp" in place["metadata"]:
        return
    body = _body(about, reason, message, warning=warning)
    if manager not in COUNTING:
        stated = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        body |= {
            "source": {},
            "firstTimestamp": None,
            "lastTimestamp": None,
            "eventTime": stated,
            "action": reason,
            "reportingComponent": by,
            "reportingInstance": f"{by}-sandbox",
        }
        write_new(store, EVENT, body, manager)
        return
    source = {"component": by} | ({"host": host} if host else {})
    same = next(
        (one for one in store.objects(EVENT, namespace) if _is_same(one, body, source)),
        None,
    )
    if same is not None:
        store.put(
            EVENT, {**same, "count": same["count"] + 1, "lastTimestamp": timestamp()}
        )
        return
    now = timestamp()
    body |= {
        "source": source,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "eventTime": None,
        "reportingComponent": by,
        "reportingInstance": host,
    }
    write_new(store, EVENT, body, manager)


def _body(about: Obj, reason: str, message: str, *, warning: bool) -> dict[str, Any]:
    metadata = about["metadata"]
    involved = {
        "kind": about["kind"],
        **({"namespace": metadata["namespace"]} if "namespace" in metadata else {}),
        "name": metadata["name"],
        "uid": metadata["uid"],
        "apiVersion": about["apiVersion"],
        "resourceVersion": metadata["resourceVersion"],
    }
    return {
        "metadata": {
            "name": f"{metadata['name']}.{secrets.token_hex(8)}",
            "namespace": metadata.get("namespace", "default"),
        },
        "involvedObject": involved,
        "reason": reason,
        "message": message,
        "type": "Warning" if warning else "Normal",
    }


def _is_same(one: Obj, body: dict[str, Any], source: dict[str, str]) -> bool:
    if one.get("source") != source or "count" not in one:
        return False
    told = ("reason", "message", "type")
    return one["involvedObject"]["uid"] == body["involvedObject"]["uid"] and all(
        one[word] == body[word] for word in told
    )
