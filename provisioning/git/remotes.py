"""The repository of a cluster, with what opens it: one per process, made when first needed or its files change."""

import os
from pathlib import Path

from django.conf import settings

from connectors.errors import PermanentError
from connectors.git import Repository
from connectors.git_address import Remote
from fleet.models import Cluster

# With when its files were changed; a newer one takes its place, so that no old token is kept.
_repositories: dict[tuple[object, ...], tuple[list[int | None], Repository]] = {}


def repository_for(cluster: Cluster) -> Repository:
    """The repository of a cluster; raises PermanentError when its credentials are not where they should be."""
    secret = (
        credentials_path(cluster.git_credentials) if cluster.git_credentials else None
    )
    key = (cluster.git_url, str(secret), str(settings.ENV.git_local_dir), os.getpid())
    changed = [
        _changed(file) for file in (secret, secret and _known_hosts(secret)) if file
    ]
    if secret and changed[0] is None:
        _repositories.pop(key, None)
        raise PermanentError(
            f"The Git credentials {cluster.git_credentials} are not there.",
            code="no_credentials",
        )
    known = _repositories.get(key)
    if known is None or known[0] != changed:
        known = _repositories[key] = (
            changed,
            Repository(_remote(cluster.git_url, secret)),
        )
    return known[1]


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
        known_hosts=_text(_known_hosts(secret)) if secret else "",
        folder=settings.ENV.git_local_dir,
        allowed=tuple(settings.ENV.git_hosts_allowed),
        ca_file=str(ca_file) if ca_file else None,
    )


def _known_hosts(secret: Path) -> Path:
    return secret.with_name(f"{secret.name}.known_hosts")


def _changed(path: Path) -> int | None:
    """When a file was changed last; None without a file."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _text(path: Path) -> str:
    """A file's text without the line's end that editors add; empty without a file."""
    try:
        text = path.read_text()
    except OSError:
        return ""
    return text if "\n" in text.strip() else text.strip()
