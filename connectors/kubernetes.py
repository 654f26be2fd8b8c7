"""Kubernetes over its REST API: the official client as transport only, raw JSON, no discovery.

A kind is named by a ``Ref``: ``(apiVersion, kind)``. Every call waits at most 3 s for a connection and 10 s
for an answer, is sent once unless the client is ``patient``, and raises TemporaryError or PermanentError (``failure``
names the codes).
"""

import base64
import builtins
import copy
import json
import os
import re
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import urllib3

from connectors import errors
from connectors.errors import ConnectorError, PermanentError, TemporaryError
from connectors.kubernetes_failures import failure, is_momentary
from connectors.patience import Patience

if TYPE_CHECKING:
    from kubernetes.client import ApiClient, Configuration

Ref = tuple[str, str]
Manifest = dict[str, Any]
Propagation = Literal["Background", "Foreground", "Orphan"]

MANAGER = "quartermaster"
TIMEOUT = (3.0, 10.0)
PAGE = 500
# A log that is followed may be silent for so many seconds, and is then asked for anew from where it was.
LOG_SILENCE = 60.0
_POOL = 8
# What a YAML parser of 1.1 takes for the end of a line, or for nothing: written as JSON escapes.
_ODD = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029, 0xFEFF)}
_KUEUE = "kueue.x-k8s.io/v1beta2"
_ADMISSION = "admissionregistration.k8s.io/v1"
# A file as an error names it; not the path of an address, which stands behind a host or a colon.
_FILE = re.compile(r"(?<![\w/:.])(?:/[^\s/'\",:;()]+)+")
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
    ("cilium.io/v2", "CiliumNetworkPolicy"): ("ciliumnetworkpolicies", True),
    ("scheduling.k8s.io/v1", "PriorityClass"): ("priorityclasses", False),
    (_ADMISSION, "ValidatingAdmissionPolicy"): ("validatingadmissionpolicies", False),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): (
        "validatingadmissionpolicybindings",
        False,
    ),
    ("batch/v1", "Job"): ("jobs", True),
    ("v1", "Service"): ("services", True),
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): ("jobsets", True),
    ("kubeflow.org/v2beta1", "MPIJob"): ("mpijobs", True),
    ("kubeflow.org/v1", "PyTorchJob"): ("pytorchjobs", True),
    ("trainer.kubeflow.org/v1alpha1", "TrainJob"): ("trainjobs", True),
    ("batch.volcano.sh/v1alpha1", "Job"): ("jobs", True),
    ("scheduling.volcano.sh/v1beta1", "Queue"): ("queues", False),
    ("scheduling.volcano.sh/v1beta1", "PodGroup"): ("podgroups", True),
    ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"): ("leaderworkersets", True),
    ("apps/v1", "Deployment"): ("deployments", True),
    (_KUEUE, "ClusterQueue"): ("clusterqueues", False),
    (_KUEUE, "LocalQueue"): ("localqueues", True),
    (_KUEUE, "Cohort"): ("cohorts", False),
    (_KUEUE, "ResourceFlavor"): ("resourceflavors", False),
    (_KUEUE, "WorkloadPriorityClass"): ("workloadpriorityclasses", False),
    (_KUEUE, "Workload"): ("workloads", True),
    (_KUEUE, "AdmissionCheck"): ("admissionchecks", False),
    (_KUEUE, "Topology"): ("topologies", False),
}


AnswerLost = errors.AnswerLost


class Cluster:
    """One cluster, reached as one identity; may be shared by threads, and survives fork()."""

    def __init__(self, configuration: "Configuration") -> None:
        configuration.retries = False
        configuration.connection_pool_maxsize = _POOL
        self._configuration = configuration
        self._lock = threading.Lock()
        # By process, and one for all that are patient: made by whichever of them calls first.
        self._connections: dict[int, tuple[ApiClient, urllib3.HTTPConnectionPool]] = {}
        self._patience = Patience()

    @classmethod
    def from_kubeconfig(
        cls, path: str | os.PathLike[str], context: str | None = None
    ) -> "Cluster":
        """Reach the cluster of a kubeconfig file; PermanentError(code="kubeconfig") when it cannot be read."""
        from kubernetes import client, config

        configuration = client.Configuration()
        configuration.proxy = None
        try:
            load: Callable[..., None] = config.load_kube_config
            load(
                os.fspath(path),
                context=context,
                client_configuration=configuration,
                persist_config=False,
            )
        # The loader takes the file for a mapping of lists of mappings, and trips over whatever else it is.
        except Exception as error:
            raise PermanentError(
                f"cannot use the kubeconfig: {_without_paths(error)}", code="kubeconfig"
            ) from error
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
            raise PermanentError(
                f"not inside a cluster: {error}", code="kubeconfig"
            ) from error
        return cls(configuration)

    def patient(self, *, seconds: float) -> "Cluster":
        """The same cluster for one piece of work: what may safely be sent again is, when the server just failed at it.

        So many seconds are spent on that in all, and a call is sent four times at most. Silence is never asked again.
        """
        other = copy.copy(self)
        other._patience = Patience(seconds)
        return other

    @property
    def server(self) -> str:
        """The address of the API server."""
        return str(self._configuration.host)

    def version(self) -> str:
        """The server's version, such as ``v1.36.2``."""
        return str(self._json("GET", "/version")["gitVersion"])

    def served_versions(self, group: str) -> Sequence[str]:
        """The versions of an API group that the server serves; none when it does not know the group."""
        try:
            return [
                str(each["version"])
                for each in self._json("GET", f"/apis/{quote(group, safe='')}")[
                    "versions"
                ]
            ]
        except PermanentError as error:
            if error.code == "not_found":
                return []
            raise

    def served_kinds(self, version: str) -> frozenset[str]:
        """The kinds of a group and version, such as `batch/v1`, that the server serves; none when it has no such."""
        where = "/".join(
            [
                "/apis" if "/" in version else "/api",
                *(quote(each, safe="") for each in version.split("/")),
            ]
        )
        try:
            return frozenset(
                str(each["kind"]) for each in self._json("GET", where)["resources"]
            )
        except PermanentError as error:
            if error.code == "not_found":
                return frozenset()
            raise

    def schema_addresses(self) -> dict[str, str]:
        """Where the schemas of each group and version stand, such as `batch/v1`; another address once they change."""
        paths = self._json("GET", "/openapi/v3").get("paths") or {}
        return {
            where.partition("/")[2]: str(one.get("serverRelativeURL", ""))
            for where, one in paths.items()
            if where.startswith(("apis/", "api/"))
        }

    def schema(self, address: str, kind: str) -> Manifest:
        """The OpenAPI schema of a kind, by one of `schema_addresses`; an empty one where it has none."""
        where, _, query = address.partition("?")
        found = self._json("GET", where, dict(parse_qsl(query)))
        schemas: Mapping[str, Manifest] = (found.get("components") or {}).get(
            "schemas"
        ) or {}
        for one in schemas.values():
            if any(
                each.get("kind") == kind
                for each in one.get("x-kubernetes-group-version-kind") or ()
            ):
                return one
        return {}

    def get(self, ref: Ref, name: str, namespace: str | None = None) -> Manifest | None:
        """One object, or None when it is not there."""
        try:
            return self._json("GET", path(ref, namespace, name))
        except PermanentError as error:
            if error.code == "not_found":
                return None
            raise

    def list(
        self,
        ref: Ref,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        name: str = "",
    ) -> list[Manifest]:
        """All objects of a kind in a namespace (None: everywhere), as they were at one moment, each with its type.

        With `name` only those of this name: a right that names it is enough. Read from the start once more when the
        server forgot the rest; TemporaryError when it forgot it again.
        """
        try:
            return [
                *self.pages(ref, namespace, label_selector=label_selector, name=name)
            ]
        except PermanentError as error:
            if error.code != "expired":
                raise
        with forgotten_twice():
            return [
                *self.pages(ref, namespace, label_selector=label_selector, name=name)
            ]

    def pages(
        self,
        ref: Ref,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        name: str = "",
    ) -> Iterator[Manifest]:
        """The same one by one, so that not all are in memory; code="expired" when the server has forgotten the rest."""
        query = {"labelSelector": label_selector} if label_selector else {}
        query |= {"fieldSelector": f"metadata.name={name}"} if name else {}
        for page in self._answers(ref, namespace, query):
            yield from _typed(ref, page["items"])

    def snapshot(self, ref: Ref) -> tuple[builtins.list[Manifest], str]:
        """All objects of a kind as they were at one moment, and the resourceVersion from which a watch goes on."""
        found: builtins.list[Manifest] = []
        version = ""
        with forgotten_twice():
            for page in self._answers(ref, None, {}):
                found += _typed(ref, page["items"])
                version = str(page["metadata"]["resourceVersion"])
        return found, version

    def watch(
        self, ref: Ref, *, since: str, seconds: int
    ) -> Iterator[tuple[str, Manifest]]:
        """What happens to objects of a kind after a resourceVersion, for so many seconds: (type, object).

        Types are ADDED, MODIFIED, DELETED and BOOKMARK, whose object has a resourceVersion only. code="expired" when
        the server has forgotten so long ago: take a new `snapshot`. TemporaryError when it is silent past the time.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }
        for line in self.stream(
            path(ref), {**query, "resourceVersion": since}, silence=seconds + TIMEOUT[0]
        ):
            try:
                said = json.loads(line)
                kind, found = str(said["type"]), said["object"]
            except (ValueError, KeyError, TypeError) as error:
                raise TemporaryError(
                    f"watch {ref[1]}: a line is cut or no JSON"
                ) from error
            if kind == "ERROR":
                raise failure(int(found.get("code") or 500), json.dumps(found))
            yield kind, {"apiVersion": ref[0], "kind": ref[1], **found}

    def log(
        self,
        namespace: str,
        pod: str,
        *,
        since: str = "",
        tail: int | None = None,
        follow: bool = False,
        opened: Callable[[], None] | None = None,
    ) -> Generator[str, None, None]:
        """The lines of a pod's only container, each behind its time (RFC 3339), from a time on or the last so many.

        With `follow` they come as they are written, until the container ends; TemporaryError after a minute without
        one, which says nothing about the pod. code="bad_request" before the container has started, "not_found" without
        a pod. `opened` is called when the cluster has answered, which may be long before the first line.
        """
        query = {"timestamps": "true"}
        query |= {"sinceTime": since} if since else {}
        query |= {"tailLines": str(tail)} if tail is not None else {}
        query |= {"follow": "true"} if follow else {}
        where = f"{path(('v1', 'Pod'), namespace, pod)}/log"
        silence = LOG_SILENCE if follow else TIMEOUT[1]
        for line in self.stream(
            where, query, silence=silence, is_text=True, opened=opened
        ):
            yield line.decode("utf-8", "replace")

    def _answers(
        self, ref: Ref, namespace: str | None, query: Mapping[str, str]
    ) -> Iterator[Manifest]:
        """The pages of a list; code="expired" when the server has forgotten the rest."""
        asked = {"limit": str(PAGE), **query}
        while True:
            page = self._json("GET", path(ref, namespace), asked)
            yield page
            if not (token := page["metadata"].get("continue")):
                return
            asked["continue"] = token

    def apply(
        self,
        manifest: Manifest,
        *,
        force: bool = True,
        dry_run: bool = False,
        manager: str = MANAGER,
    ) -> Manifest:
        """Server-side apply as ``manager``; without force another owner's field is code="conflict".

        Sends exactly what it is given: an unknown field is refused (code="invalid"), never dropped.
        """
        query = {
            "fieldManager": manager,
            "fieldValidation": "Strict",
            "force": str(force).lower(),
        }
        where = path(
            ref_of(manifest), _namespace_of(manifest), manifest["metadata"]["name"]
        )
        sent = rendered(manifest)
        return self._json(
            "PATCH", where, _dry(query, dry_run), sent, "application/apply-patch+yaml"
        )

    def merge(
        self, ref: Ref, name: str, namespace: str | None, changes: Manifest
    ) -> Manifest:
        """Change these fields of an object that is there (JSON merge patch), as ``quartermaster``.

        With `metadata.uid` in them, only the object that has it. code="not_found" when there is none.
        """
        query = {"fieldManager": MANAGER, "fieldValidation": "Strict"}
        return self._json(
            "PATCH",
            path(ref, namespace, name),
            query,
            changes,
            "application/merge-patch+json",
        )

    def create(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """POST an object; code="already_exists" when the name is taken. Use it for Jobs, never apply."""
        query = {"fieldManager": MANAGER, "fieldValidation": "Strict"}
        where = path(ref_of(manifest), _namespace_of(manifest))
        return self._json("POST", where, _dry(query, dry_run), manifest)

    def delete(
        self,
        ref: Ref,
        name: str,
        namespace: str | None = None,
        *,
        propagation: Propagation = "Background",
        uid: str = "",
    ) -> bool:
        """Ask for an object to go; False when it was not there. True does not mean gone: finalizers take time.

        With `uid`, only the object that has it: one made anew under the same name is code="conflict".
        """
        body = {
            "propagationPolicy": propagation,
            **({"preconditions": {"uid": uid}} if uid else {}),
        }
        try:
            self._json("DELETE", path(ref, namespace, name), body=body)
        except PermanentError as error:
            if error.code == "not_found":
                return False
            raise
        return True

    def can_i(
        self, verb: str, ref: Ref, namespace: str | None = None, name: str = ""
    ) -> bool:
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
        answer = self._json(
            "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body=body
        )
        return bool(answer["status"].get("allowed"))

    def measured(self, service: str, query: str) -> Sequence[Manifest]:
        """The samples that the Prometheus behind a Service (namespace/service:port) has now for a query, by its labels.

        The API server passes the call on, so that nothing but its own address is reached.
        """
        namespace, _, name = service.partition("/")
        where = f"/api/v1/namespaces/{quote(namespace)}/services/{quote(name)}/proxy/api/v1/query"
        answer = self._json("GET", where, {"query": query})
        data = answer.get("data")
        if answer.get("status") != "success" or not isinstance(data, dict):
            raise TemporaryError(
                f"Prometheus: {str(answer.get('error', 'no answer'))[:300]}"
            )
        return [one for one in data.get("result") or () if isinstance(one, dict)]

    def close(self) -> None:
        """Give back the connections of this process; the next call opens new ones."""
        with self._lock:
            for api, _ in self._connections.values():
                api.rest_client.pool_manager.clear()
            self._connections.clear()

    def _json(
        self,
        method: str,
        where: str,
        query: Mapping[str, str] | None = None,
        body: Manifest | bytes | None = None,
        content_type: str = "application/json",
    ) -> Manifest:
        text = self._taken(method, where, query or {}, body, content_type)
        try:
            answer = json.loads(text)
        except ValueError as error:
            raise TemporaryError(
                f"{method} {where}: the answer is cut or no JSON"
            ) from error
        if not isinstance(answer, dict):
            raise TemporaryError(f"{method} {where}: the answer is no object")
        return answer

    def _taken(self, method: str, *call: Any) -> str:
        """The answer to a call that was taken, sent again as far as that is safe and patience lasts."""
        tries = 0
        while True:
            began, tries = time.monotonic(), tries + 1
            error: ConnectorError
            try:
                status, headers, text = self._send(method, *call)
            except AnswerLost as lost:
                # A write may have been done: who made it reads back what stands.
                error, is_repeatable = lost, method == "GET"
            else:
                if status < 400:
                    return text
                error = failure(status, text, headers.get("Retry-After"))
                is_repeatable = is_momentary(status, error) and _may_be_repeated(
                    method, call[2]
                )
            if not is_repeatable:
                raise error
            pause = self._patience.pause(tries, took=time.monotonic() - began)
            if pause is None:
                raise error
            time.sleep(pause)

    def _send(
        self,
        method: str,
        where: str,
        query: Mapping[str, str],
        body: Manifest | bytes | None,
        content_type: str,
    ) -> tuple[int, Mapping[str, str], str]:
        answer = self._opened(method, where, query, body, content_type)
        return answer.status, answer.headers, answer.data.decode("utf-8", "replace")

    def _opened(
        self,
        method: str,
        where: str,
        query: Mapping[str, str],
        body: Manifest | bytes | None,
        content_type: str,
        silence: float | None = None,
    ) -> urllib3.BaseHTTPResponse:
        """The answer to one call: whole, or still to be read when it may be silent for so many seconds."""
        api, pool = self._api()
        headers = {"Accept": "application/json", "User-Agent": MANAGER}
        if body is not None:
            headers["Content-Type"] = content_type
        api.update_params_for_auth(headers, [], ["BearerToken"], where, method, body)
        url = f"{urlsplit(self.server).path}{where}" + (
            f"?{urlencode(query)}" if query else ""
        )
        try:
            return pool.urlopen(
                method,
                url,
                body
                if body is None or isinstance(body, bytes)
                else json.dumps(body).encode(),
                headers,
                retries=False,
                redirect=False,
                preload_content=silence is None,
                timeout=urllib3.Timeout(connect=TIMEOUT[0], read=silence or TIMEOUT[1]),
            )
        except urllib3.exceptions.ProtocolError as error:
            raise AnswerLost(
                f"{method} {where}: {type(error).__name__}: {error}"
            ) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise TemporaryError(
                f"{method} {where}: {type(error).__name__}: {error}"
            ) from error

    def stream(
        self,
        where: str,
        query: Mapping[str, str],
        *,
        silence: float,
        is_text: bool = False,
        opened: Callable[[], None] | None = None,
    ) -> Iterator[bytes]:
        """The lines of an answer that goes on, as they come; TemporaryError after so many seconds without one.

        Raises what any call raises when it is refused. Close the iterator to end the call. Of a text, what is written
        behind the last end of a line is a line, too.
        """
        answer = self._opened("GET", where, query, None, "", silence)
        try:
            if answer.status >= 400:
                text = answer.read(decode_content=True).decode("utf-8", "replace")
                raise failure(answer.status, text, answer.headers.get("Retry-After"))
            if opened is not None:
                opened()
            rest = b""
            for part in answer.stream(2**16, decode_content=True):
                *lines, rest = (rest + part).split(b"\n")
                yield from lines
            if rest and is_text:
                yield rest
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise TemporaryError(
                f"GET {where}: {type(error).__name__}: {error}"
            ) from error
        finally:
            # What was not read to its end cannot carry another call.
            answer.close()

    def _api(self) -> "tuple[ApiClient, urllib3.HTTPConnectionPool]":
        """The client of this process, and its connections: they must not be shared over fork()."""
        from kubernetes.client import ApiClient

        with self._lock:
            if os.getpid() not in self._connections:
                self._connections.clear()
                api = ApiClient(self._configuration)
                pool = api.rest_client.pool_manager.connection_from_url(self.server)
                self._connections[os.getpid()] = (api, pool)
            return self._connections[os.getpid()]


def check_kubeconfig(path: str | os.PathLike[str], context: str | None = None) -> None:
    """Refuse a file that names no cluster and no user: PermanentError(code="kubeconfig"). Runs no login command."""
    from kubernetes.config import kube_config

    merge: Callable[..., Any] = kube_config.KubeConfigMerger
    load: Callable[..., Any] = kube_config.KubeConfigLoader
    try:
        server = load(merge(os.fspath(path)).config, active_context=context)._cluster[
            "server"
        ]
    except Exception as error:
        raise PermanentError(
            f"cannot use the kubeconfig: {error}", code="kubeconfig"
        ) from error
    if urlsplit(str(server)).scheme not in ("https", "http"):
        raise PermanentError(
            "cannot use the kubeconfig: it names no server", code="kubeconfig"
        )


def certificates_of(path: str | os.PathLike[str], context: str | None = None) -> str:
    """The certificate authority that a kubeconfig file names, in PEM; empty where it names none or cannot be read."""
    from kubernetes.config import kube_config

    merge: Callable[..., Any] = kube_config.KubeConfigMerger
    load: Callable[..., Any] = kube_config.KubeConfigLoader
    try:
        named = load(merge(os.fspath(path)).config, active_context=context)._cluster
        data = named.safe_get("certificate-authority-data")
        if data:
            return base64.b64decode(data, validate=True).decode("ascii")
        file = named.safe_get("certificate-authority")
        return (Path(path).parent / file).read_text("ascii") if file else ""
    except Exception:  # what is wrong with the file is said by the cluster's health
        return ""


@contextmanager
def forgotten_twice() -> Iterator[None]:
    """A list whose pages went stale for the second time running: the next look may well have more luck."""
    try:
        yield
    except PermanentError as error:
        if error.code != "expired":
            raise
        raise TemporaryError(error.message) from error


def ref_of(manifest: Mapping[str, Any]) -> Ref:
    """The kind of a manifest."""
    return str(manifest["apiVersion"]), str(manifest["kind"])


def rendered(manifest: Mapping[str, Any]) -> bytes:
    """The bytes of a manifest, the same ones to a cluster and to a repository: JSON that people can read and compare.

    Every YAML parser reads JSON alike, so no string can turn into a number, a date or a truth value on the way.
    """
    text = json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    return text.translate(_ODD).encode()


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


def _typed(ref: Ref, items: Sequence[Manifest]) -> Iterator[Manifest]:
    """The objects of a list, whose own kind the server leaves out."""
    return ({"apiVersion": ref[0], "kind": ref[1], **item} for item in items)


def _plural(ref: Ref) -> tuple[str, bool]:
    try:
        return KINDS[ref]
    except KeyError as error:
        raise PermanentError(
            f"{ref[1]} of {ref[0]} is no kind we write", code="unknown_kind"
        ) from error


def _group(ref: Ref) -> str:
    return ref[0].rpartition("/")[0]


def _namespace_of(manifest: Mapping[str, Any]) -> str | None:
    namespace: str | None = manifest["metadata"].get("namespace")
    return namespace


def _dry(query: dict[str, str], dry_run: bool) -> dict[str, str]:
    return {**query, "dryRun": "All"} if dry_run else query


def _may_be_repeated(method: str, body: Any) -> bool:
    """Whether a call that comes twice does nothing more: a read, a patch, the deletion of one object by its uid."""
    return method in ("GET", "PATCH") or (
        method == "DELETE" and "preconditions" in body
    )


def _without_paths(error: Exception) -> str:
    """What an error says, without where files lie on this machine: everybody who sees a cluster reads it."""
    return _FILE.sub("a file", str(error))
