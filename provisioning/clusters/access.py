"""How a team uses its place on a cluster: sign in, queue, nodes, a first job, and where to look."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings

from fleet.authority import authority_of
from fleet.models import Flavor
from provisioning.desired.first_job import (
    NAME,
    QUEUE_LABEL,
    Kind,
    as_yaml,
    first_job,
    queue_of,
)
from provisioning.models import Tenancy

# The public client that kubelogin signs people in with at AKS: https://azure.github.io/kubelogin
KUBELOGIN_CLIENT = "80faf920-1908-4b52-b5ef-a8e7bedfc67a"


@dataclass(frozen=True)
class Held:
    """GPUs of a kind that the team holds here, and how a pod gets onto their nodes.

    `words` is what people call the kind. `growing` says what happens when too few of them are ready; empty where the
    pool does not grow.
    """

    gpus: int
    kind: Kind
    words: str
    growing: str = ""

    @property
    def marks(self) -> str:
        """Node labels and tolerations as a pod's specification has them."""
        parts: dict[str, Any] = {}
        if self.kind.node_labels:
            parts["nodeSelector"] = dict(self.kind.node_labels)
        if self.kind.taints:
            parts["tolerations"] = self.kind.tolerations
        return as_yaml(parts) if parts else ""


@dataclass(frozen=True)
class Use:
    """What somebody needs to know to run something.

    `logs` and `line` are commands: what the first job prints, and what of the namespace is in line.
    """

    namespace: str
    queue_label: str
    login: str
    held: list[Held]
    job: str
    logs: str
    line: str
    dashboards_url: str

    @property
    def sign_in(self) -> str:
        """The commands that sign in, with one behind them that shows that they did; empty without an address."""
        return f"{self.login}\nkubectl get pods" if self.login else ""

    @property
    def hand_in(self) -> str:
        """The commands that create the first job from its file and follow what it prints."""
        return f"kubectl apply --filename {NAME}.yaml\n{self.logs}"


def use_of(tenancy: Tenancy) -> Use:
    """What is said about a place; `tenancy` comes with its cluster."""
    held, queueing = _held(tenancy), tenancy.cluster.queueing
    job = first_job(
        tenancy.namespace, held[0].kind if held else None, queueing=queueing
    )
    queue, with_volcano = (
        queue_of(tenancy.namespace, queueing),
        tenancy.cluster.has_volcano,
    )
    return Use(
        namespace=tenancy.namespace,
        queue_label=f"spec.queue: {queue}"
        if with_volcano
        else f"{QUEUE_LABEL}: {queue}",
        login=_login(tenancy),
        held=held,
        job=as_yaml(job),
        # A pod of Volcano's is called after its job, its task and its number.
        logs=f"kubectl --namespace {tenancy.namespace} logs "
        f"{f'{NAME}-main-0' if with_volcano else f'job/{NAME}'} --follow",
        line=f"kubectl --namespace {tenancy.namespace} get {'podgroups' if with_volcano else 'workloads'}",
        dashboards_url=tenancy.cluster.dashboards_url,
    )


def _held(tenancy: Tenancy) -> list[Held]:
    kinds = {flavor.name: flavor for flavor in tenancy.cluster.flavors.all()}
    return [
        Held(
            quota["gpus"],
            Kind(row.name, row.resource, row.node_labels, row.node_taints or []),
            row.words,
            _growing(row),
        )
        for quota in tenancy.spec.get("flavors", [])
        if quota["gpus"] and (row := kinds.get(quota["name"])) is not None
    ]


def _growing(flavor: Flavor) -> str:
    if not flavor.can_grow_to or flavor.gpus_ready >= flavor.gpus_at_most:
        return ""
    ready = f"{flavor.gpus_ready} ready now."
    return f"{ready} When jobs need more, the pool {flavor.grows}; until then their pods are Pending."


def _login(tenancy: Tenancy) -> str:
    """The lines that make `kubectl` sign in with Entra ID; empty while nobody has told the cluster's address."""
    cluster = tenancy.cluster
    if not cluster.api_server:
        return ""
    plugin = [
        "get-token",
        "--login",
        "devicecode",
        "--server-id",
        cluster.kubelogin_server_id,
        "--client-id",
        KUBELOGIN_CLIENT,
        "--tenant-id",
        settings.ENV.entra_tenant_id,
    ]
    authority = authority_of(cluster)
    file = f"{cluster.name}-ca.crt"
    trusts = (
        [f"--certificate-authority={file}", "--embed-certs=true"] if authority else []
    )
    steps = [
        *([[f"cat > {file} <<'EOF'\n{authority}\nEOF"]] if authority else []),
        [
            f"kubectl config set-cluster {cluster.name}",
            f"--server={cluster.api_server}",
            *trusts,
        ],
        [
            f"kubectl config set-credentials {cluster.name}",
            "--exec-api-version=client.authentication.k8s.io/v1beta1",
            "--exec-command=kubelogin",
            *(f"--exec-arg={part}" for part in plugin),
        ],
        [
            f"kubectl config set-context {cluster.name}",
            f"--cluster={cluster.name}",
            f"--user={cluster.name}",
            f"--namespace={tenancy.namespace}",
        ],
        [f"kubectl config use-context {cluster.name}"],
    ]
    return "\n".join(" \\\n    ".join(step) for step in steps)
