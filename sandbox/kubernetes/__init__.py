"""An offline Kubernetes API server with Kueue's objects or Volcano's: one ``Cluster`` per cluster, served over TLS.

    cluster = Cluster("dev", nodes=[NodeSpec("gpu-0", gpus=8)], tokens={"secret": Identity("ada", ("group-id",))})
    Cluster("batch", queueing="volcano")  # its queues are Volcano's, and it has neither Kueue nor JobSet
    cluster.app                      # the ASGI application: `sandbox.serving` serves it over TLS
    cluster.dirty                    # something changed since the last snapshot() or restore()
    state = cluster.snapshot()       # JSON data; Cluster(..., state=state) or cluster.restore(state) brings it back

A token whose groups hold ``system:masters`` may do everything and may use the switches of the sandbox:
``POST /sandbox/faults`` (see ``faults.Fault``), ``DELETE /sandbox/faults``, ``GET /sandbox/stats``
(``{"writes": n, "reads": n, "logs": n}``), ``POST /sandbox/workloads {namespace, flavor, gpus}`` (so many are in use
there) and
``POST /sandbox/compact`` (etcd forgets; what the API server cached since it started is still served) and
``POST /sandbox/restart`` (the API server starts anew: older watches expire, and continue tokens when etcd forgot them;
the first list of a custom kind is 429 ``storage is (re)initializing``), and ``POST /sandbox/cilium`` (Cilium's
policies are served from now on) and ``POST /sandbox/jobset {"served": false}`` (JobSet is not installed any more), and
``POST /sandbox/kueue {"served": false}`` (Kueue's controller is away until that is true again).
"""

from sandbox.kubernetes.autoscaling import NodePool
from sandbox.kubernetes.cluster import Cluster
from sandbox.kubernetes.identity import Identity
from sandbox.kubernetes.seeds import NodeSpec

__all__ = ["Cluster", "Identity", "NodePool", "NodeSpec"]
