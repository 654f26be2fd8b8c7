"""Whether a kubeconfig still leads to the cluster that it led to first: the uid of the namespace `kube-system`, kept.

That namespace is made with a cluster and never deleted, so its uid is the cluster's own. It is looked at before
anything is written, and before nodes are counted.
"""

from django.db import IntegrityError, transaction

from connectors.errors import PermanentError, TemporaryError
from connectors.kubernetes import Cluster as Client
from fleet.models import Cluster

SYSTEM = "kube-system"
ANOTHER = (
    "The kubeconfig leads to another cluster than before. Nothing was written and nothing counted there: mend the "
    "file, or accept the other cluster on this one's page."
)


def confirm(cluster: Cluster, client: Client) -> None:
    """Keep which API server this is at the first contact; refuse another one afterwards.

    Raises PermanentError (code `another_cluster`, `registered_twice`), and TemporaryError for one that shows no
    `kube-system`: it has just started, or answers nothing truly.
    """
    uid = _uid(client)
    known = Cluster.objects.values_list("identity", flat=True).get(pk=cluster.pk)
    if not known:
        _keep(cluster, uid)
    elif known != uid:
        Cluster.objects.filter(pk=cluster.pk).exclude(identity_found=uid).update(
            identity_found=uid
        )
        raise _another()
    else:
        Cluster.objects.filter(pk=cluster.pk).exclude(identity_found="").update(
            identity_found=""
        )


def check(cluster: Cluster, client: Client) -> None:
    """Refuse what `confirm` refuses, and keep nothing; raises as it does."""
    uid = _uid(client)
    if cluster.identity and cluster.identity != uid:
        raise _another()
    if not cluster.identity and Cluster.objects.filter(identity=uid).exists():
        raise _registered_twice(uid)


def _uid(client: Client) -> str:
    found = client.get(("v1", "Namespace"), SYSTEM)
    if found is None:
        raise TemporaryError(
            f"The cluster shows no namespace {SYSTEM}: what it answers is not believed."
        )
    return str(found["metadata"]["uid"])


def _another() -> PermanentError:
    return PermanentError(ANOTHER, code="another_cluster")


def _registered_twice(uid: str) -> PermanentError:
    other = Cluster.objects.filter(identity=uid).first()
    words = f"This API server is registered as {other.title if other else 'another cluster'} already."
    return PermanentError(words, code="registered_twice")


def _keep(cluster: Cluster, uid: str) -> None:
    try:
        with transaction.atomic():
            mine = Cluster.objects.not_written_off().filter(pk=cluster.pk)
            mine.filter(identity="").update(identity=uid)
    except IntegrityError as error:
        raise _registered_twice(uid) from error
