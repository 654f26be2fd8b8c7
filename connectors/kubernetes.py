"""Kubernetes over its REST API: the official client as transport only, raw JSON, no discovery.

A kind is named by a ``Ref``: ``(apiVersion, kind)``. Every call waits at most 3 s for a connection and 10 s
for an answer, is sent once, and raises TemporaryError or PermanentError (see ``failure`` for the codes).
"""

import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, urlencode

import urllib3

from connectors.errors import ConnectorError, PermanentError, TemporaryError

if TYPE_CHECKING:
    from kubernetes.client import ApiClient, Configuration

Ref = tuple[str, str]
Manifest = dict[str, Any]
Propagation = Literal["Background", "Foreground", "Orphan"]

MANAGER = "quartermaster"
TIMEOUT = (3.0, 10.0)
PAGE = 500
_POOL = 8
_BODY_LIMIT = 500
_KUEUE = "kueue.x-k8s.io/v1beta2"
_RBAC = "rbac.authorization.k8s.io/v1"

KINDS: Mapping[Ref, tuple[str, bool]] = {
    ("v1", "Namespace"): ("namespaces", False),
    ("v1", "ResourceQuota"): ("resourcequotas", True),
    ("v1", "LimitRange"): ("limitranges", True),
    ("v1", "ServiceAccount"): ("serviceaccounts", True),
    ("v1", "PersistentVolumeClaim"): ("persistentvolumeclaims", True),
    ("v1", "ConfigMap"): ("configmaps", True),
    ("v1", "Node"): ("nodes", False),
    ("v1", "Pod"): ("pods", True),
    ("v1", "Event"): ("events", True),
    (_RBAC, "Role"): ("roles", True),
    (_RBAC, "RoleBinding"): ("rolebindings", True),
    (_RBAC, "ClusterRole"): ("clusterroles", False),
    (_RBAC, "ClusterRoleBinding"): ("clusterrolebindings", False),
    ("networking.k8s.io/v1", "NetworkPolicy"): ("networkpolicies", True),
    ("scheduling.k8s.io/v1", "PriorityClass"): ("priorityclasses", False),
    ("batch/v1", "Job"): ("jobs", True),
    (_KUEUE, "ClusterQueue"): ("clusterqueues", False),
    (_KUEUE, "LocalQueue"): ("localqueues", True),
    (_KUEUE, "Cohort"): ("cohorts", False),
    (_KUEUE, "ResourceFlavor"): ("resourceflavors", False),
    (_KUEUE, "WorkloadPriorityClass"): ("workloadpriorityclasses", False),
    (_KUEUE, "Workload"): ("workloads", True),
    (_KUEUE, "AdmissionCheck"): ("admissionchecks", False),
    (_KUEUE, "Topology"): ("topologies", False),
}


class Cluster:
    """One cluster, reached as one identity; may be shared by threads, and survives fork()."""

    def __init__(self, configuration: "Configuration") -> None:
        configuration.retries = False
        configuration.connection_pool_maxsize = _POOL
        self._configuration = configuration
        self._lock = threading.Lock()
        self._client: tuple[int, ApiClient] | None = None

    @classmethod
    def from_kubeconfig(cls, path: str | os.PathLike[str], context: str | None = None) -> "Cluster":
        """Reach the cluster of a kubeconfig file; PermanentError(code="kubeconfig") when it cannot be read."""
        from kubernetes import client, config

        configuration = client.Configuration()
        configuration.proxy = None
        try:
            load: Callable[..., None] = config.load_kube_config
            load(os.fspath(path), context=context, client_configuration=configuration, persist_config=False)
        except (config.ConfigException, OSError, ValueError) as error:
            raise PermanentError(f"cannot use the kubeconfig: {error}", code="kubeconfig") from error
        return cls(configuration)

    @classmethod
    def in_cluster(cls) -> "Cluster":
        """Reach the cluster this process runs in, by the token mounted into the pod."""
        from kubernetes import client, config

        configuration = client.Configuration()
        configuration.proxy = None
        try:
            load: Callable[..., None] = config.load_incluster_config
            load(client_configuration=configuration)
        except config.ConfigException as error:
            raise PermanentError(f"not inside a cluster: {error}", code="kubeconfig") from error
        return cls(configuration)

    @property
    def server(self) -> str:
        """The address of the API server."""
        return str(self._configuration.host)

    def version(self) -> str:
        """The server's version, such as ``v1.36.2``."""
        return str(self._json("GET", "/version")["gitVersion"])

    def get(self, ref: Ref, name: str, namespace: str | None = None) -> Manifest | None:
        """One object, or None when it is not there."""
        try:
            return self._json("GET", path(ref, namespace, name))
        except PermanentError as error:
            if error.code == "not_found":
                return None
            raise

    def list(self, ref: Ref, namespace: str | None = None, *, label_selector: str = "") -> list[Manifest]:
        """All objects of a kind in a namespace (None: everywhere), as they were at one moment, each with its type."""
        try:
            return [*self._pages(ref, namespace, label_selector)]
        except PermanentError as error:
            if error.code != "expired":
                raise
        return [*self._pages(ref, namespace, label_selector)]

    def _pages(self, ref: Ref, namespace: str | None, label_selector: str) -> Iterator[Manifest]:
        query = {"limit": str(PAGE), **({"labelSelector": label_selector} if label_selector else {})}
        while True:
            page = self._json("GET", path(ref, namespace), query)
            for item in page["items"]:
                yield {"apiVersion": ref[0], "kind": ref[1], **item}
            if not (token := page["metadata"].get("continue")):
                return
            query["continue"] = token

    def apply(self, manifest: Manifest, *, force: bool = True, dry_run: bool = False) -> Manifest:
        """Server-side apply as ``quartermaster``; without force another owner's field is code="conflict".

        Sends exactly what it is given: an unknown field is refused (code="invalid"), never dropped.
        """
        query = {"fieldManager": MANAGER, "fieldValidation": "Strict", "force": str(force).lower()}
        where = path(ref_of(manifest), _namespace_of(manifest), manifest["metadata"]["name"])
        return self._json("PATCH", where, _dry(query, dry_run), manifest, "application/apply-patch+yaml")

    def create(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """POST an object; code="already_exists" when the name is taken. Use it for Jobs, never apply."""
        query = {"fieldManager": MANAGER, "fieldValidation": "Strict"}
        where = path(ref_of(manifest), _namespace_of(manifest))
        return self._json("POST", where, _dry(query, dry_run), manifest)

    def delete(
        self, ref: Ref, name: str, namespace: str | None = None, *, propagation: Propagation = "Background"
    ) -> bool:
        """Ask for an object to go; False when it was not there. True does not mean gone: finalizers take time."""
        try:
            self._json("DELETE", path(ref, namespace, name), body={"propagationPolicy": propagation})
        except PermanentError as error:
            if error.code == "not_found":
                return False
            raise
        return True

    def can_i(self, verb: str, ref: Ref, namespace: str | None = None, name: str = "") -> bool:
        """Whether this identity may do something; unknown rights are a no."""
        plural, _ = _plural(ref)
        asked = {
            "verb": verb,
            "group": _group(ref),
            "resource": plural,
            "namespace": namespace or "",
            "name": name,
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        answer = self._json("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=body)
        return bool(answer["status"].get("allowed"))

    def close(self) -> None:
        """Give back the connections of this process; the next call opens new ones."""
        with self._lock:
            if self._client:
                self._client[1].rest_client.pool_manager.clear()
            self._client = None

    def _json(
        self,
        method: str,
        where: str,
        query: Mapping[str, str] | None = None,
        body: Manifest | None = None,
        content_type: str = "application/json",
    ) -> Manifest:
        status, headers, text = self._send(method, where, query or {}, body, content_type)
        if status >= 400:
            raise failure(status, text, headers.get("Retry-After"))
        try:
            answer = json.loads(text)
        except ValueError as error:
            raise TemporaryError(f"{method} {where}: the answer is cut or no JSON") from error
        if not isinstance(answer, dict):
            raise TemporaryError(f"{method} {where}: the answer is no object")
        return answer

    def _send(
        self, method: str, where: str, query: Mapping[str, str], body: Manifest | None, content_type: str
    ) -> tuple[int, Mapping[str, str], str]:
        from kubernetes.client import ApiException

        api = self._api()
        headers = {"Accept": "application/json", "User-Agent": MANAGER}
        if body is not None:
            headers["Content-Type"] = content_type
        api.update_params_for_auth(headers, [], ["BearerToken"], where, method, body)
        url = f"{self.server}{where}" + (f"?{urlencode(query)}" if query else "")
        try:
            answer = api.call_api(method, url, headers, body, _request_timeout=TIMEOUT)
            read: Callable[[], bytes] = answer.read
            return answer.status, answer.headers, read().decode("utf-8", "replace")
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise TemporaryError(f"{method} {where}: {type(error).__name__}: {error}") from error
        except ApiException as error:
            raise TemporaryError(f"{method} {where}: {error.reason}") from error

    def _api(self) -> "ApiClient":
        """The client of this process: connections must not be shared over fork()."""
        from kubernetes.client import ApiClient

        with self._lock:
            if self._client is None or self._client[0] != os.getpid():
                self._client = (os.getpid(), ApiClient(self._configuration))
            return self._client[1]


def ref_of(manifest: Mapping[str, Any]) -> Ref:
    """The kind of a manifest."""
    return str(manifest["apiVersion"]), str(manifest["kind"])


def path(ref: Ref, namespace: str | None = None, name: str | None = None) -> str:
    """The path of a kind or of one object; PermanentError(code="unknown_kind") for a kind not in KINDS."""
    plural, namespaced = _plural(ref)
    parts = ["/apis" if "/" in ref[0] else "/api", ref[0]]
    if namespaced and namespace is not None:
        parts += ["namespaces", quote(namespace, safe="")]
    parts.append(plural)
    if name is not None:
        parts.append(quote(name, safe=""))
    return "/".join(parts)


def _plural(ref: Ref) -> tuple[str, bool]:
    try:
        return KINDS[ref]
    except KeyError as error:
        raise PermanentError(f"{ref[1]} of {ref[0]} is no kind we write", code="unknown_kind") from error


def _group(ref: Ref) -> str:
    return ref[0].rpartition("/")[0]


def _namespace_of(manifest: Mapping[str, Any]) -> str | None:
    namespace: str | None = manifest["metadata"].get("namespace")
    return namespace


def _dry(query: dict[str, str], dry_run: bool) -> dict[str, str]:
    return {**query, "dryRun": "All"} if dry_run else query


_FORBIDDEN = (
    ("exceeded quota", "quota"),
    ("failed quota", "quota"),
    ("attempting to grant RBAC permissions not currently held", "escalation"),
    ("denied the request", "denied"),
)
_CODES = {400: "bad_request", 401: "unauthorized", 404: "not_found", 410: "expired", 422: "invalid"}
_MALFORMED = ("field not declared in schema", "failed to convert", "failed to create typed patch object")


def failure(status: int, text: str, retry_after: str | None = None) -> ConnectorError:
    """What an answer of 400 or more means, by (status, reason, message); the status alone would mislead.

    Codes: unauthorized, forbidden, quota, escalation, denied, not_found, conflict, already_exists, invalid,
    bad_request, expired; a 500 is temporary unless it complains about the object itself (code="invalid").
    """
    said = _status_of(text)
    message = f"{status} {said.get('reason') or ''}: {said.get('message') or text}"[:_BODY_LIMIT]
    wait = _seconds(retry_after, said)
    if _is_temporary(status, message):
        return TemporaryError(message, retry_after=wait)
    return PermanentError(message, code=_code(status, str(said.get("reason")), message))


def _status_of(text: str) -> Mapping[str, Any]:
    try:
        body = json.loads(text)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _seconds(header: str | None, said: Mapping[str, Any]) -> float | None:
    value = header or (said.get("details") or {}).get("retryAfterSeconds")
    try:
        return float(value) if value else None
    except ValueError:
        return None


def _is_temporary(status: int, message: str) -> bool:
    if status == 500:
        return not any(text in message for text in _MALFORMED)
    if status in {408, 429} or status > 500:
        return True
    return (status == 403 and "being terminated" in message) or (status == 409 and "being deleted" in message)


def _code(status: int, reason: str, message: str) -> str:
    if status == 403:
        return next((code for text, code in _FORBIDDEN if text in message), "forbidden")
    if status == 409:
        return "already_exists" if reason == "AlreadyExists" else "conflict"
    return _CODES.get(status, "invalid" if status == 500 else "bad_request")
