"""The repository of a cluster, with what opens it: one per process, made when first needed."""

import os
from pathlib import Path

from django.conf import settings

from connectors.errors import PermanentError
from connectors.git import Repository
from connectors.git_address import Remote
from fleet.models import Cluster

_repositories: dict[tuple[object, ...], Repository] = {}


def repository_for(cluster: Cluster) -> Repository:
    """The repository of a cluster; raises PermanentError when its credentials are not where they should be."""
    secret = credentials_path(cluster.git_credentials) if cluster.git_credentials else None
    try:
        changed = secret.stat().st_mtime_ns if secret else 0
    except OSError as error:
        raise PermanentError(
            f"The Git credentials {cluster.git_credentials} are not there.", code="no_credentials"
        ) from error
    key = (cluster.git_url, str(secret), changed, str(settings.ENV.git_local_dir), os.getpid())
    if key not in _repositories:
        _repositories[key] = Repository(_remote(cluster.git_url, secret))
    return _repositories[key]


def credentials_path(name: str) -> Path:
    """Where credentials of this name lie; only plain names inside the configured folder are possible."""
    return Path(settings.ENV.git_credentials_dir) / Path(name).name


def author() -> str:
    """Who signs the commits, as `Name <address>`."""
    return str(settings.ENV.git_author)


def _remote(url: str, secret: Path | None) -> Remote:
    ca_file = settings.ENV.ca_file
    return Remote(
        url=url,
        secret=_text(secret) if secret else "",
        known_hosts=_text(secret.with_name(f"{secret.name}.known_hosts")) if secret else "",
        folder=settings.ENV.git_local_dir,
        allowed=tuple(settings.ENV.git_hosts_allowed),
        ca_file=str(ca_file) if ca_file else None,
    )


def _text(path: Path) -> str:
    """A file's text without the line's end that editors add; empty without a file."""
    try:
        text = path.read_text()
    except OSError:
        return ""
    return text if "\n" in text.strip() else text.strip()
