"""What may be given as a hub's address and as its token's file; nothing is called here."""

import re
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from connectors.sockets import is_link_local, is_public, numeric
from notebooks.hubs.clients import token_path
from web.refusals import BadInput

HTTPS = 443
LONGEST_ADDRESS = 300
ADDRESS = re.compile(
    r"https://(\[[0-9a-f:.]+\]|[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)(:[0-9]{1,5})?(/[A-Za-z0-9._~-]+)*",
    re.ASCII,
)


def checked_address(text: str) -> str:
    """The address without what means nothing; raises BadInput for one that is never called.

    What a name leads to is looked up when the hub is called.
    """
    scheme, _, rest = text.strip().partition("://")
    host, slash, path = rest.partition("/")
    address = f"{scheme.lower()}://{host.lower()}{slash}{path}".rstrip("/")
    if (
        len(address) > LONGEST_ADDRESS
        or not ADDRESS.fullmatch(address)
        or "/.." in address
    ):
        raise _bad_address(
            "Give the address of the hub, such as https://hub.example.com."
        )
    address = address.removesuffix(f":{HTTPS}")
    parts = urlsplit(address)
    try:
        name, port = parts.hostname or "", parts.port or HTTPS
    except ValueError as error:
        raise _bad_address("This port is none.") from error
    allowed = settings.ENV.hub_hosts_allowed
    is_allowed = f"{name}:{port}" in allowed or (port == HTTPS and name in allowed)
    if _leads_inside(name, is_allowed=is_allowed):
        raise _bad_address(
            f"{name} is not on the internet and not among the hosts allowed."
        )
    if port != HTTPS and not is_allowed:
        raise _bad_address(f"Hubs are called at port {HTTPS} only.")
    return address


def checked_public_address(text: str) -> str:
    """Where browsers open a hub, which may be inside their network: nothing is called there.

    Empty where that is the address itself. Raises BadInput for what is no https, but of a host that is allowed.
    """
    address = text.strip().rstrip("/")
    scheme, _, rest = address.partition("://")
    is_allowed = rest.partition("/")[0] in settings.ENV.hub_hosts_allowed
    told = f"https://{rest}" if scheme == "http" and is_allowed else address
    if address and (
        len(address) > LONGEST_ADDRESS
        or not ADDRESS.fullmatch(told)
        or "/.." in address
    ):
        raise BadInput(
            "Give the address at which people open the hub, such as https://hub.example.com, or leave it empty.",
            code="bad_address",
            field="public_address",
        )
    return address


def check_token_file(name: str) -> None:
    """Refuse what is no plain name of a file in the folder; raises BadInput."""
    plain = (
        Path(name).name == name
        and not name.startswith((".", "-"))
        and name.isprintable()
    )
    if not name or not plain or not token_path(name).is_file():
        raise BadInput(
            "Give the name of a file in the portal's folder for tokens of hubs, without a path.",
            code="no_credentials",
            field="token_file",
        )


def _leads_inside(host: str, *, is_allowed: bool) -> bool:
    """Whether the host is an inner address by itself, or one where clouds hand out credentials."""
    if f".{host}".endswith(".localhost"):
        return not is_allowed
    address = numeric(host)
    if not address:
        return False
    return is_link_local(address) if is_allowed else not is_public(address)


def _bad_address(words: str) -> BadInput:
    return BadInput(words, code="bad_address", field="address")
