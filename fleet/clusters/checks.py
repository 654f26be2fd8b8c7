"""What a cluster is refused, each at its field."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from audit import clock
from connectors.errors import PermanentError
from connectors.kubernetes import check_kubeconfig
from fleet.authority import AuthorityRefused, certificates_from
from fleet.egress import EgressRefused, egress_from
from fleet.models import Cluster
from fleet.names import (
    SERVICE,
    is_shared_space,
)
from fleet.services import ServiceRefused, services_from
from web.refusals import BadInput, Conflict

# These stand in commands that people paste: nothing in them may mean anything to a shell.
WEB_ADDRESS = re.compile(
    r"https://[A-Za-z0-9.-]{1,253}(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?"
)
OBJECT_ID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
AZURE_ID = re.compile(
    r"/subscriptions/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/resourcegroups/[\w.()-]{1,90}"
    r"/providers/microsoft\.containerservice/managedclusters/[\w-]{1,63}",
    re.ASCII | re.IGNORECASE,
)
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}", re.ASCII)
NOT_OF_A_CLUSTER = ("QM_", "KUBERNETES_")
MOST_VARIABLES, LONGEST_VALUE = 50, 1_000
FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")


def check_kubeconfig_file(cluster: Cluster) -> None:
    """Refuse everything but the plain name of a kubeconfig that is there; empty means the portal's own cluster."""
    name = cluster.kubeconfig
    if not name:
        return
    if not FILE_NAME.fullmatch(name):
        raise BadInput(
            "Give the name of a file in the portal's kubeconfig folder, without a path.",
            code="no_kubeconfig",
            field="kubeconfig",
        )
    path = Path(settings.ENV.kubeconfig_dir) / name
    if not path.is_file():
        raise BadInput(
            "The portal's kubeconfig folder has no file of this name.",
            code="no_kubeconfig",
            field="kubeconfig",
        )
    try:
        check_kubeconfig(path, cluster.context or None)
    except PermanentError as error:
        raise BadInput(
            "This file is no kubeconfig with this context: it must name a cluster's address and a user.",
            code="bad_kubeconfig",
            field="kubeconfig",
        ) from error


def check_authority(cluster: Cluster) -> None:
    """Keep the certificates of what was said and nothing else; refuse what holds none."""
    try:
        cluster.certificate_authority = certificates_from(
            cluster.certificate_authority, now=clock.now()
        )
    except AuthorityRefused as error:
        raise BadInput(
            str(error), code="bad_certificate", field="certificate_authority"
        ) from error


def check_around(cluster: Cluster) -> None:
    """Refuse a notebook hub or shared services that would open one team's namespace to another."""
    hub = cluster.jupyterhub_namespace
    if hub and not is_shared_space(hub):
        raise BadInput(
            "Give the namespace the hub lives in: small letters, digits, hyphens, and no team's.",
            code="bad_name",
            field="jupyterhub_namespace",
        )
    for field in ("api_server", "dashboards_url"):
        if getattr(cluster, field) and not WEB_ADDRESS.fullmatch(
            getattr(cluster, field)
        ):
            raise BadInput(
                "Give an address that starts with https://, without spaces or a password.",
                code="bad_address",
                field=field,
            )
    if cluster.prometheus and not SERVICE.fullmatch(cluster.prometheus):
        raise BadInput(
            "Give namespace/service:port, such as monitoring/prometheus-operated:9090.",
            code="bad_service",
            field="prometheus",
        )
    if cluster.azure_id and not AZURE_ID.fullmatch(cluster.azure_id):
        raise BadInput(
            "Give the cluster's resource id, as `az aks show --query id` prints it.",
            code="bad_id",
            field="azure_id",
        )
    if not OBJECT_ID.fullmatch(cluster.kubelogin_server_id):
        raise BadInput(
            "Give the object id of an Entra application, such as 6dae42f8-4368-4678-94ff-3960e28e3630.",
            code="bad_id",
            field="kubelogin_server_id",
        )
    try:
        services_from(cluster.shared_services)
    except ServiceRefused as refusal:
        raise BadInput(
            str(refusal), code="bad_service", field="shared_services"
        ) from refusal
    try:
        egress_from(cluster.egress)
    except EgressRefused as refusal:
        raise BadInput(str(refusal), code="bad_egress", field="egress") from refusal


def check_variables(cluster: Cluster) -> None:
    """Refuse what is no environment of a program, or what the portal and Kubernetes say themselves."""
    given = cluster.run_variables
    if not isinstance(given, dict) or len(given) > MOST_VARIABLES:
        raise BadInput(
            f"Give at most {MOST_VARIABLES} variables by their names, such as NCCL_DEBUG.",
            code="bad_variables",
            field="run_variables",
        )
    for name, value in given.items():
        if not VARIABLE.fullmatch(name) or name.startswith(NOT_OF_A_CLUSTER):
            raise BadInput(
                f"“{name[:60]}” cannot be set for runs: use letters, digits and underscores, and neither QM_ nor "
                "KUBERNETES_ at the beginning.",
                code="bad_variables",
                field="run_variables",
            )
        if (
            not isinstance(value, str)
            or len(value) > LONGEST_VALUE
            or not value.isprintable()
        ):
            raise BadInput(
                f"{name} is text in one line of at most {LONGEST_VALUE} characters.",
                code="bad_variables",
                field="run_variables",
            )


def check_names(cluster: Cluster, changed: Mapping[str, Any]) -> None:
    """Refuse ways out by name where nothing would enforce them; what stands from before is left to the next look."""
    if not {"egress", "outside_by_name"} & changed.keys() or cluster.takes_names:
        return
    if any(rule.names for rule in egress_from(cluster.egress)):
        raise BadInput(
            _why_no_names(cluster), code="no_ways_out_by_name", field="egress"
        )


def _why_no_names(cluster: Cluster) -> str:
    """Why a cluster takes no ways out by name, and what to do."""
    if cluster.outside_by_name == Cluster.ByName.NONE:
        return f"{cluster.title} takes no ways out by name (outside_by_name): name ranges of addresses."
    if cluster.has_cilium is None:
        return (
            f"It is not known yet whether {cluster.title} has Cilium, which enforces names. Wait for the first look at "
            "it, or say that it has (outside_by_name)."
        )
    return (
        f"{cluster.title} has no CiliumNetworkPolicy (cilium.io/v2) that the portal may write: name ranges of "
        "addresses, or apply deploy/kubernetes/ there if its network is Cilium."
    )


def check_stands(cluster: Cluster) -> None:
    """Refuse to change what was written off; raises Conflict."""
    if cluster.written_off_at is not None:
        raise Conflict(
            f"{cluster.title} is written off, and what stood there is let go of. Register it anew, by another name.",
            code="written_off",
        )


def check_empty_of_others(cluster: Cluster) -> None:
    """Refuse to give a cluster to one team while others are on it; who is gone is history there."""
    others = cluster.tenancies.exclude(team=cluster.dedicated_to_id).exclude(
        stage="gone"
    )
    if cluster.dedicated_to_id is not None and others.exists():
        raise Conflict(
            "Other teams are on this cluster. They leave before it can be one team's own.",
            code="others_are_there",
            field="dedicated_to",
        )
