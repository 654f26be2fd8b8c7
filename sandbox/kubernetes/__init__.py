"""An offline Kubernetes API server with Kueue's objects: one ``Cluster`` per cluster, served over TLS.

    cluster = Cluster("dev", nodes=[NodeSpec("gpu-0", gpus=8)], tokens={"secret": Identity("ada", ("group-id",))})
    cluster.app                      # the ASGI application: `sandbox.serving` serves it over TLS
    cluster.dirty                    # something changed since the last snapshot() or restore()
    state = cluster.snapshot()       # JSON data; Cluster(..., state=state) or cluster.restore(state) brings it back

A token whose groups hold ``system:masters`` may do everything and may use the switches of the sandbox:
``POST /sandbox/faults`` (see ``faults.Fault``), ``DELETE /sandbox/faults``, ``GET /sandbox/stats``
(``{"writes": n, "reads": n}``), ``POST /sandbox/workloads {namespace, flavor, gpus}`` (so many are in use there) and
``POST /sandbox/compact`` (older watches and continue tokens expire).
"""

from sandbox.kubernetes.cluster import Cluster
from sandbox.kubernetes.identity import Identity
from sandbox.kubernetes.seeds import NodeSpec

__all__ = ["Cluster", "Identity", "NodeSpec"]
