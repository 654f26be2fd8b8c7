"""Entra ID and Microsoft Graph on loopback: sign-in, tokens, people and groups."""

from sandbox.entra.app import EntraSandbox

__all__ = ["EntraSandbox"]
