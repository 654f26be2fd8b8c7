"""A Git repository for each profile's development container, from which VS Code opens it with one press.

VS Code clones without signing in, so whoever has the address may read it, for a day: it carries a signature.
"""

from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from django.conf import settings
from django.core import signing
from django.urls import reverse

from connectors.git import Signed, static_repository
from notebooks.profile_desk.kept import Offered, offered
from notebooks.profiles.devcontainers import devcontainer

SALT, VALID = "devcontainer", timedelta(days=1)
AUTHOR = "Quartermaster <quartermaster@localhost>"
# A version never changes, and neither does its repository: the moment is no one's.
AT = datetime(2026, 1, 1, tzinfo=UTC)
# https://code.visualstudio.com/docs/devcontainers/containers: opens a container with a clone of this repository in it.
OPENS = "vscode://ms-vscode-remote.remote-containers/cloneInVolume?url="
README = """\
# {title}

A development container with the image of the notebook profile `{slug}`, version {number}. Copy the folder
`.devcontainer` into a repository of your own to keep it with your code.
"""


def vscode_link(profile: Offered) -> str:
    """What opens a profile's development container in VS Code on the machine of whoever follows it."""
    return OPENS + quote(address_of(profile), safe="")


def address_of(profile: Offered) -> str:
    """Where Git clones the repository of a profile's version from, for a day."""
    slug = profile.document.slug
    token = signing.dumps([slug, profile.number], salt=SALT)
    head = reverse("devcontainer-repository", args=[token, slug, "HEAD"])
    return f"{settings.PUBLIC_URL}{head.removesuffix('/HEAD')}"


def read(token: str, slug: str, path: str) -> bytes | None:
    """A file of the repository that an address names; None where its time is over, or the profile is another by now."""
    try:
        told = signing.loads(token, salt=SALT, max_age=VALID)
    except signing.BadSignature:
        return None
    found = next(
        (one for one in offered() if [one.document.slug, one.number] == told), None
    )
    if found is None or found.document.slug != slug:
        return None
    about = README.format(title=found.document.title, slug=slug, number=found.number)
    files = {
        ".devcontainer/devcontainer.json": devcontainer(found.document).encode(),
        "README.md": about.encode(),
    }
    signed = Signed(f"{found.document.title}, version {found.number}", AUTHOR, AT)
    return static_repository(files, signed).get(path)
