"""Signing in to a portal, and out again."""

from __future__ import annotations

import sys

import click

from qm import configuration, words
from qm.calls import Portal
from qm.configuration import Access


@click.command()
@click.option(
    "--url",
    metavar="URL",
    required=True,
    envvar="QM_URL",
    help="The portal's address, without a path, as in https://gpus.example.com.",
)
@click.option(
    "--token-stdin",
    is_flag=True,
    help="Read the token from standard input instead of asking.",
)
def login(url: str, token_stdin: bool) -> None:
    """Sign in. It takes a personal token, which you make in the portal under Tokens."""
    url = configuration.checked(url)
    secret = (
        sys.stdin.readline()
        if token_stdin
        else click.prompt("Token", hide_input=True, err=True)
    )
    found = Access(url, configuration.cleaned(secret))
    me = Portal(found).get("me/")
    configuration.store(found)
    teams = ", ".join(one["name"] for one in me["teams"]) or "none yet"
    words.note(f"Signed in to {url} as {me['name']}. Teams: {teams}.")


@click.command()
def logout() -> None:
    """Forget the token. It stays good until it expires: end it in the portal under Tokens."""
    words.note(
        "The token is forgotten." if configuration.forget() else "There was no token."
    )
