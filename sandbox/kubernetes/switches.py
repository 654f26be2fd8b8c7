"""The switches of the sandbox itself, for administrators only: faults, interruptions, use, counters, new starts."""

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sandbox.kubernetes import kueue_webhooks
from sandbox.kubernetes.calls import Answer, Call, json_answer, page_not_found
from sandbox.kubernetes.occupying import occupy
from sandbox.kubernetes.rbac import MASTERS
from sandbox.kubernetes.status import Refusal, bad_request
from sandbox.kubernetes.traffic import traffic_of

if TYPE_CHECKING:
    from sandbox.kubernetes.cluster import Cluster


def handle(cluster: "Cluster", call: Call) -> Answer:
    """Answer a ``/sandbox/…`` request; 403 without an administrator's token."""
    if MASTERS not in call.who.groups:
        raise Refusal(
            403,
            f'forbidden: User "{call.who.user}" cannot use the sandbox',
            "Forbidden",
            {},
        )
    switch = _SWITCHES.get((call.method, call.path))
    if switch is None:
        return page_not_found()
    answer = switch(cluster, call)
    cluster.controllers.settle()
    return answer


def _stats(cluster: "Cluster", _call: Call) -> Answer:
    counted = ("writes", "reads", "logs")
    return json_answer(200, {name: cluster.requests[name] for name in counted})


def _add_fault(cluster: "Cluster", call: Call) -> Answer:
    cluster.faults.add(_spec(call))
    return json_answer(201, {})


def _clear_faults(cluster: "Cluster", _call: Call) -> Answer:
    cluster.faults.clear()
    return json_answer(200, {})


def _occupy(cluster: "Cluster", call: Call) -> Answer:
    return occupy(cluster.store, call, cluster.queueing)


def _interrupt(cluster: "Cluster", call: Call) -> Answer:
    return cluster.controllers.interruptions.announce(call)


def _compact(cluster: "Cluster", _call: Call) -> Answer:
    cluster.store.compact()
    return json_answer(200, {"oldest": cluster.store.oldest})


def _install_cilium(cluster: "Cluster", _call: Call) -> Answer:
    cluster.install_cilium()
    return json_answer(200, {})


def _serve_visibility(cluster: "Cluster", call: Call) -> Answer:
    cluster.has_visibility = _spec(call).get("served") is not False
    return json_answer(200, {"served": cluster.has_visibility})


def _serve_prometheus(cluster: "Cluster", call: Call) -> Answer:
    cluster.has_prometheus = _spec(call).get("served") is not False
    return json_answer(200, {"served": cluster.has_prometheus})


def _let_through(cluster: "Cluster", call: Call) -> Answer:
    one = traffic_of(_spec(call))
    cluster.traffic[one.namespace, one.service] = one
    return json_answer(201, {})


def _serve_jobset(cluster: "Cluster", call: Call) -> Answer:
    cluster.has_jobset = _spec(call).get("served") is not False
    return json_answer(200, {"served": cluster.has_jobset})


def _serve_kueue(cluster: "Cluster", call: Call) -> Answer:
    is_there = _spec(call).get("served") is not False
    kueue_webhooks.put_there(cluster.store, is_there=is_there)
    return json_answer(200, {"served": is_there})


def _restart(cluster: "Cluster", _call: Call) -> Answer:
    cluster.restart()
    return json_answer(200, {"oldest": cluster.store.oldest})


def _spec(call: Call) -> dict[str, object]:
    try:
        spec = json.loads(call.body)
    except ValueError as error:
        raise bad_request(f"json parse error: {error}") from error
    if not isinstance(spec, dict):
        raise bad_request("a fault is a JSON object")
    return spec


_SWITCHES: Mapping[tuple[str, str], Callable[["Cluster", Call], Answer]] = {
    ("GET", "/sandbox/stats"): _stats,
    ("POST", "/sandbox/faults"): _add_fault,
    ("DELETE", "/sandbox/faults"): _clear_faults,
    ("POST", "/sandbox/workloads"): _occupy,
    ("POST", "/sandbox/interruptions"): lambda cluster, call: (
        cluster.controllers.interruptions.announce(call)
    ),
    ("POST", "/sandbox/compact"): _compact,
    ("POST", "/sandbox/cilium"): _install_cilium,
    ("POST", "/sandbox/visibility"): _serve_visibility,
    ("POST", "/sandbox/traffic"): _let_through,
    ("POST", "/sandbox/jobset"): _serve_jobset,
    ("POST", "/sandbox/kueue"): _serve_kueue,
    ("POST", "/sandbox/prometheus"): _serve_prometheus,
    ("POST", "/sandbox/restart"): _restart,
}
