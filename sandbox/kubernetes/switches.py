"""The switches of the sandbox itself, for administrators only: faults, use, counters, compaction, a new start."""

import json
from typing import TYPE_CHECKING

from sandbox.kubernetes.calls import Answer, Call, json_answer, page_not_found
from sandbox.kubernetes.occupying import occupy
from sandbox.kubernetes.rbac import MASTERS
from sandbox.kubernetes.status import Refusal, bad_request

if TYPE_CHECKING:
    from sandbox.kubernetes.cluster import Cluster


def handle(cluster: "Cluster", call: Call) -> Answer:
    """Answer a ``/sandbox/…`` request; 403 without an administrator's token."""
    if MASTERS not in call.who.groups:
        raise Refusal(403, f'forbidden: User "{call.who.user}" cannot use the sandbox', "Forbidden", {})
    match (call.method, call.path):
        case ("GET", "/sandbox/stats"):
            return json_answer(
                200, {"writes": cluster.requests["writes"], "reads": cluster.requests["reads"]}
            )
        case ("POST", "/sandbox/faults"):
            cluster.faults.add(_spec(call))
            return json_answer(201, {})
        case ("DELETE", "/sandbox/faults"):
            cluster.faults.clear()
            return json_answer(200, {})
        case ("POST", "/sandbox/workloads"):
            answer = occupy(cluster.store, call)
            cluster.controllers.settle()
            return answer
        case ("POST", "/sandbox/compact"):
            cluster.store.compact()
            return json_answer(200, {"oldest": cluster.store.oldest})
        case ("POST", "/sandbox/cilium"):
            cluster.install_cilium()
            return json_answer(200, {})
        case ("POST", "/sandbox/visibility"):
            cluster.has_visibility = _spec(call).get("served") is not False
            return json_answer(200, {"served": cluster.has_visibility})
        case ("POST", "/sandbox/restart"):
            cluster.restart()
            return json_answer(200, {"oldest": cluster.store.oldest})
    return page_not_found()


def _spec(call: Call) -> dict[str, object]:
    try:
        spec = json.loads(call.body)
    except ValueError as error:
        raise bad_request(f"json parse error: {error}") from error
    if not isinstance(spec, dict):
        raise bad_request("a fault is a JSON object")
    return spec
