"""One request from authorization to answer."""

from typing import TYPE_CHECKING

from sandbox.kubernetes import (
    accounts,
    discovery,
    prometheus,
    reads,
    status,
    visibility,
)
from sandbox.kubernetes.calls import Answer, Call, Target
from sandbox.kubernetes.kinds import Kind
from sandbox.kubernetes.logs import LogStream
from sandbox.kubernetes.reviews import review
from sandbox.kubernetes.status import Refusal
from sandbox.kubernetes.watching import Watch
from sandbox.kubernetes.writes import denial

if TYPE_CHECKING:
    from sandbox.kubernetes.cluster import Cluster

_ACCEPTED = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/*",
    "*/*",
)
_NOT_ACCEPTABLE = (
    "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
    "application/vnd.kubernetes.protobuf, application/json;stream=watch, "
    "application/vnd.kubernetes.protobuf;stream=watch"
)
_SERVED_PARTS = frozenset({"", "status", "finalize", "token", "log"})


def handle(cluster: "Cluster", call: Call) -> Answer | Watch | LogStream:
    """Answer a request; raises Refusal for everything that is refused."""
    _authorize(cluster, call)
    if call.target is None:
        return discovery.answer(
            call, cluster.groups, has_visibility=cluster.has_visibility
        )
    if call.target.group == visibility.GROUP:
        return visibility.answer(cluster, call, call.target)
    if call.target.subresource == "proxy" and call.target.plural == "services":
        return prometheus.answer(cluster, call)
    reviewed = review(call, cluster.authorizer)
    if reviewed:
        return reviewed
    kind = call.target.kind
    if kind is None or not cluster.serves(kind):
        return discovery.unknown_resource(call.path)
    _check_path(call, kind, call.target)
    if call.target.subresource == "log":
        cluster.count(call)
        return cluster.logs.read(call, call.target)
    _check_accept(call)
    cluster.count(call)
    if call.target.subresource == "token":
        return accounts.token(cluster, call, call.target)
    return _serve(cluster, call, kind, call.target)


def _authorize(cluster: "Cluster", call: Call) -> None:
    what = call.attributes
    allowed, _ = cluster.authorizer.allowed(call.who, what)
    if allowed:
        return
    at = call.target
    if at is None:
        message = (
            f'forbidden: User "{call.who.user}" cannot {what.verb} path "{call.path}"'
        )
        raise Refusal(403, message, "Forbidden", {})
    kind = at.kind or Kind(at.group, at.version, "", at.plural, "", True)
    raise status.forbidden(kind, at.name, denial(call.who.user, what))


def _check_path(call: Call, kind: Kind, at: Target) -> None:
    if bool(at.namespace) and not kind.namespaced:
        raise status.no_such_resource()
    if at.subresource not in _SERVED_PARTS or (
        at.subresource and at.subresource not in kind.subresources
    ):
        raise status.no_such_resource()
    if call.verb not in (("get",) if at.subresource == "log" else kind.verbs):
        raise status.method_not_allowed()
    if call.method == "POST" and at.name and not at.subresource:
        raise status.method_not_allowed()
    if kind.namespaced and not at.namespace and call.verb not in {"list", "watch"}:
        raise status.method_not_allowed()


def _check_accept(call: Call) -> None:
    accept = call.headers.get("accept", "")
    if accept and not any(kind in accept for kind in _ACCEPTED):
        raise Refusal(406, _NOT_ACCEPTABLE, "NotAcceptable", {})


def _serve(cluster: "Cluster", call: Call, kind: Kind, at: Target) -> Answer | Watch:
    if call.verb in ("list", "watch"):
        cluster.check_cache(kind, call)
    match call.verb:
        case "get":
            return reads.get(cluster.store, kind, call, at)
        case "list":
            return reads.list_objects(cluster.store, kind, call, at)
        case "watch":
            return Watch(cluster.store, kind, call, at)
        case "create":
            return cluster.writes.create(call, kind, at)
        case "update":
            return cluster.writes.update(call, kind, at)
        case "patch":
            return cluster.writes.patch(call, kind, at)
        case "delete":
            return cluster.deletes.delete(call, kind, at)
    return cluster.deletes.delete_collection(call, kind, at)
