"""Whether a cluster enforces ways out by DNS name, and lets the portal write them."""

from connectors.kubernetes import Cluster
from provisioning.desired.network import BY_NAME, BY_NAME_POLICY

GROUP, VERSION = BY_NAME[0].split("/")


def is_usable(cluster: Cluster, *, is_written_to: bool) -> bool:
    """Whether Cilium's policies are served, and the portal may read all and, where it writes itself, change its own.

    Served is not enforced: whether Cilium's DNS proxy runs, nobody can see from here (docs/how-to/open-ways-out.md).
    """
    if VERSION not in cluster.served_versions(GROUP):
        return False
    if not cluster.can_i("list", BY_NAME):
        return False
    return not is_written_to or cluster.can_i("patch", BY_NAME, name=BY_NAME_POLICY)
