"""What may be said about the repository of a cluster that is delivered to by Git; nothing is called here."""

from pathlib import Path

from django.conf import settings

from connectors.errors import PermanentError
from connectors.git_address import Place, is_branch, read
from connectors.sockets import is_public, numeric
from fleet.models import Cluster
from web.refusals import BadInput

FIELDS = frozenset({"delivery", "git_url", "git_branch", "git_way", "git_credentials"})


def check_repository(cluster: Cluster) -> None:
    """Refuse an address, a branch or credentials that could not work; raises BadInput naming the field."""
    if cluster.git_url or cluster.delivery == Cluster.Delivery.GIT:
        _check_address(cluster)
    if not is_branch(cluster.git_branch):
        raise BadInput(
            "Give the plain name of a branch, such as main.",
            code="bad_branch",
            field="git_branch",
        )
    if cluster.git_credentials:
        _check_credentials(cluster.git_credentials)


def _check_address(cluster: Cluster) -> None:
    try:
        place = read(cluster.git_url, folder=settings.ENV.git_local_dir)
    except PermanentError as error:
        raise BadInput(error.message, code="bad_address", field="git_url") from error
    if _leads_inside(place):
        raise BadInput(
            f"{place.host} is not on the internet and not among the hosts allowed.",
            code="bad_address",
            field="git_url",
        )
    if place.scheme == "ssh" and not cluster.git_credentials:
        raise BadInput(
            "An ssh address needs a key: name its file.",
            code="no_credentials",
            field="git_credentials",
        )
    if cluster.git_way != Cluster.GitWay.PULL_REQUEST:
        return
    if place.scheme != "https" or len(place.path.strip("/").split("/")) != 2:
        raise BadInput(
            "Pull requests need an address like https://github.com/owner/name.",
            code="bad_address",
            field="git_url",
        )
    if not cluster.git_credentials:
        raise BadInput(
            "Pull requests need a token: name its file.",
            code="no_credentials",
            field="git_credentials",
        )


def _check_credentials(name: str) -> None:
    plain = (
        Path(name).name == name
        and not name.startswith((".", "-"))
        and name.isprintable()
    )
    if not plain or not (Path(settings.ENV.git_credentials_dir) / name).is_file():
        raise BadInput(
            "Give the name of a file in the portal's folder for Git credentials, without a path.",
            code="no_credentials",
            field="git_credentials",
        )


def _leads_inside(place: Place) -> bool:
    """Whether the host is an inner address by itself; what a name leads to is looked up when it is called."""
    allowed = settings.ENV.git_hosts_allowed
    if (
        not place.host
        or place.host in allowed
        or f"{place.host}:{place.port}" in allowed
    ):
        return False
    if f".{place.host}".endswith(".localhost"):
        return True
    address = numeric(place.host)
    return bool(address) and not is_public(address)
