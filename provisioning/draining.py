"""Stopping what runs on a cluster whose queues stop nothing by themselves: Volcano lowers no queue's work by force."""

from collections.abc import Callable, Mapping
from typing import Any

from connectors.errors import PermanentError
from connectors.kubernetes import Cluster as Client
from provisioning.desired.kueue_form import is_volcanos
from provisioning.desired.volcano import JOB, POD_GROUP
from provisioning.pods import is_over

POD = ("v1", "Pod")
# By which a pod says to which PodGroup it belongs.
GROUP = "scheduling.k8s.io/group-name"


def stop_all(client: Client, namespace: str, *, check: Callable[[], None]) -> int:
    """Delete every pod of a namespace whose quota lets none be made again; returns how many. Raises ConnectorError.

    Jobs stay, as Kueue leaves them: they start their pods once the quota has room again.
    """
    return sum(_delete(client, POD, pod, check) for pod in _live(client, namespace))


def stop_group(client: Client, namespace: str, name: str, *, uid: str) -> bool:
    """Have one PodGroup give its GPUs back for good; False when it is gone, or another one has its name by now.

    A Volcano Job is deleted, which ends its pods; of anything else the pods are, and its queue lets no new ones start.
    """
    group = client.get(POD_GROUP, name, namespace)
    if group is None or group["metadata"]["uid"] != uid:
        return False
    owners = group["metadata"].get("ownerReferences") or ()
    job = next((one for one in owners if is_volcanos(one)), None)
    if job is not None:
        return _gone(client, JOB, str(job["name"]), namespace, uid=str(job["uid"]))
    pods = [one for one in _live(client, namespace) if _group_of(one) == name]
    return sum(_delete(client, POD, one, lambda: None) for one in pods) > 0


def _live(client: Client, namespace: str) -> list[dict[str, Any]]:
    return [one for one in client.list(POD, namespace) if _is_live(one)]


def _is_live(pod: Mapping[str, Any]) -> bool:
    return not (pod["metadata"].get("deletionTimestamp") or is_over(pod))


def _group_of(pod: Mapping[str, Any]) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(GROUP, ""))


def _delete(
    client: Client,
    ref: tuple[str, str],
    found: Mapping[str, Any],
    check: Callable[[], None],
) -> bool:
    meta = found["metadata"]
    check()
    return _gone(client, ref, meta["name"], meta["namespace"], uid=meta["uid"])


def _gone(
    client: Client, ref: tuple[str, str], name: str, namespace: str, *, uid: str
) -> bool:
    """Delete it in the background; False when it was not there, or another one has its name by now."""
    try:
        return client.delete(ref, name, namespace, uid=uid)
    except PermanentError as error:
        if error.code != "conflict":
            raise
        return False
