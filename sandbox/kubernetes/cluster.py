"""One sandbox cluster: its state, its callers and the application that serves it."""

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakSet

from starlette.applications import Starlette

from sandbox.kubernetes import app
from sandbox.kubernetes.admission import Admission
from sandbox.kubernetes.autoscaling import NodePool
from sandbox.kubernetes.calls import Call
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.controllers import Controllers
from sandbox.kubernetes.deletes import Deletes
from sandbox.kubernetes.faults import Faults
from sandbox.kubernetes.identity import Identity
from sandbox.kubernetes.kinds import (
    CILIUM_GROUP,
    JOBSET_GROUP,
    KINDS,
    KUEUE,
    KUEUE_GROUP,
    OPTIONAL_GROUPS,
    VOLCANO,
    VOLCANO_GROUPS,
    Kind,
    by_kind,
)
from sandbox.kubernetes.logs import Logs
from sandbox.kubernetes.rbac import Authorizer
from sandbox.kubernetes.seeds import NodeSpec, seeds
from sandbox.kubernetes.status import Refusal
from sandbox.kubernetes.store import Obj, Store
from sandbox.kubernetes.traffic import Traffic
from sandbox.kubernetes.watching import Watch
from sandbox.kubernetes.writes import Writes


class Cluster:
    """A Kubernetes API server with Kueue or Volcano, in memory; serve ``.app`` with any ASGI server.

    ``pools`` are the nodes that its autoscaler adds and takes away.

    ``tokens`` maps bearer tokens to identities (group ``system:masters`` may do everything, and may use
    ``/sandbox/…``); ``state`` is what ``snapshot()`` once returned and replaces the seeds. With ``cilium`` its network
    is Cilium, whose policies it serves. ``queueing`` says whose its queues are, "kueue" or "volcano"; a cluster with
    Volcano has neither Kueue nor JobSet.
    """

    def __init__(
        self,
        name: str,
        *,
        nodes: Sequence[NodeSpec] = (),
        pools: Sequence[NodePool] = (),
        tokens: Mapping[str, Identity] | None = None,
        state: Mapping[str, Any] | None = None,
        ca: str = "",
        cilium: bool = False,
        queueing: str = KUEUE,
    ) -> None:
        if queueing not in {KUEUE, VOLCANO}:
            raise ValueError(
                f"{queueing}: a cluster's queues are {KUEUE}'s or {VOLCANO}'s"
            )
        self.name = name
        self.queueing = queueing
        self.has_cilium = cilium
        self.has_visibility = self.has_jobset = queueing == KUEUE
        self.has_prometheus = True
        # What its services answer, by namespace and name; it ends with the process.
        self.traffic: dict[tuple[str, str], Traffic] = {}
        self.tokens = dict(tokens or {})
        # Tokens of service accounts, which callers asked for; they end with the process.
        self.account_tokens: dict[str, Identity] = {}
        self.faults = Faults()
        self.requests: Counter[str] = Counter()
        self.restored = 0
        self.watches: WeakSet[Watch] = WeakSet()
        # Custom kinds whose cache the API server has not filled yet.
        self.initializing: set[Kind] = set()
        self.store: Store = Store()
        self.authorizer = Authorizer(self.store)
        self.admission = admission = Admission(self.store, self.authorizer, queueing)
        self.writes = Writes(self.store, admission, self.authorizer)
        self.deletes = Deletes(self.store, admission)
        self.controllers: Controllers = Controllers(
            self.store, self.deletes, admission, ca, pools, queueing=queueing
        )
        self.logs = Logs(self.store, self.controllers.spans)
        if state is None:
            self._seed(tuple(nodes))
        else:
            self.restore(state)
        self.controllers.settle()
        self.store.begin_caching()
        if state is not None:
            self.restart()
        self.app: Starlette = app.build(self)

    def _seed(self, nodes: tuple[NodeSpec, ...]) -> None:
        now = timestamp()
        for obj in seeds(nodes, now, self.queueing):
            kind = by_kind(obj["apiVersion"], obj["kind"])
            if kind:
                metadata = {
                    **obj["metadata"],
                    "uid": str(uuid.uuid4()),
                    "creationTimestamp": now,
                }
                self.store.put(kind, {**obj, "metadata": metadata})

    def restart(self) -> None:
        """Start the API server anew over the same etcd: its caches begin now, those of custom kinds when first read."""
        self.store.begin_caching()
        self.initializing = {kind for kind in KINDS if not kind.builtin}

    def end_watches(self) -> None:
        """End every watch that is open, as an API server does that is told to stop."""
        for watch in tuple(self.watches):
            watch.end()

    def install_cilium(self) -> None:
        """Have its definitions applied to a running server."""
        if not self.has_cilium:
            self.has_cilium = True
            self.initializing |= {kind for kind in KINDS if kind.group == CILIUM_GROUP}

    @property
    def groups(self) -> frozenset[str]:
        """The groups that it serves because somebody installed them."""
        installed = {CILIUM_GROUP: self.has_cilium, JOBSET_GROUP: self.has_jobset}
        queues = VOLCANO_GROUPS if self.queueing == VOLCANO else {KUEUE_GROUP}
        return (
            frozenset(group for group, is_there in installed.items() if is_there)
            | queues
        )

    def serves(self, kind: Kind | None) -> bool:
        """Whether it knows this kind: those of other projects are there once they are installed."""
        return kind is not None and kind.group not in OPTIONAL_GROUPS - self.groups

    def leave_jobsets_alone(self) -> None:
        """Have JobSet's definition without its controller and webhook: only Kueue looks after JobSets then."""
        self.controllers.jobsets.is_running = self.admission.knows_jobset = False

    def check_cache(self, kind: Kind, call: Call) -> None:
        """Refuse the read that makes the API server fill its cache of a custom kind (429); the next one is answered.

        A page without a selector is read from etcd meanwhile (apiserver/pkg/storage/cacher, Kubernetes 1.36).
        """
        if kind not in self.initializing or (
            call.verb == "list" and _is_plain_page(call)
        ):
            return
        self.initializing.discard(kind)
        details = {"retryAfterSeconds": 1}
        raise Refusal(
            429,
            "storage is (re)initializing",
            "TooManyRequests",
            details,
            headers={"retry-after": "1"},
        )

    def count(self, call: Call) -> None:
        """Count a request on objects: dry runs count as neither read nor write, a log counts as both read and log."""
        if call.target is not None and call.target.subresource == "log":
            self.requests["logs"] += 1
        if call.method in {"GET", "HEAD"}:
            self.requests["reads"] += 1
        elif not call.dry_run:
            self.requests["writes"] += 1

    @property
    def dirty(self) -> bool:
        """Whether anything changed since the last snapshot() or restore()."""
        return self.store.dirty

    def snapshot(self) -> dict[str, Any]:
        """All objects as JSON data; clears ``dirty``."""
        self.store.dirty = False
        return self.store.snapshot()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replace all objects by a snapshot; watches from before expire with 410, requests still held with 503."""
        self.restored += 1
        self.store.restore(state, _kind_of)
        self.authorizer.reset()
        self.controllers.resume()


def _is_plain_page(call: Call) -> bool:
    return (
        bool(call.query.get("limit"))
        and not {"labelSelector", "fieldSelector"} & call.query.keys()
    )


def _kind_of(obj: Obj) -> Any:
    return by_kind(obj["apiVersion"], obj["kind"])
