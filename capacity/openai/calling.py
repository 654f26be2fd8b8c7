"""How a team calls its models: with a token of Entra ID, without keys."""

from capacity.openai.models import ModelEndpoint

EMBEDDING = "text-embedding"
# Azure's API keeps old versions; this one is generally available.
API_VERSION = "2024-10-21"
WHO = "Members of the team’s Entra group, each with a token of Entra ID."
KEYLESS = "It has no keys."
# They open it to whoever has one, also after leaving the team.
WITH_KEYS = "Somebody switched its keys on in Azure: whoever has one may call it, too."
CLOSED = "Its network is closed: ask platform leads for a private endpoint, by which your workloads reach it."
OPEN = "Its network is open: platform leads opened it in Azure."


def callers_words(endpoint: ModelEndpoint) -> str:
    """Who may call it, in sentences."""
    return f"{WHO} {WITH_KEYS if endpoint.account.has_keys else KEYLESS}"


def network_words(endpoint: ModelEndpoint) -> str:
    """From where it may be called, in a sentence."""
    return OPEN if endpoint.account.is_open else CLOSED


def example(endpoint: ModelEndpoint) -> str:
    """A call of it in the shell, by whoever is signed in to Azure; empty while it has no address."""
    address = endpoint.account.endpoint.rstrip("/")
    if not address:
        return ""
    what, body = (
        "chat/completions",
        '{"messages": [{"role": "user", "content": "Hello"}]}',
    )
    if endpoint.model.startswith(EMBEDDING):
        what, body = "embeddings", '{"input": "Hello"}'
    return (
        "TOKEN=$(az account get-access-token --resource https://cognitiveservices.azure.com"
        " --query accessToken --output tsv)\n"
        f'curl "{address}/openai/deployments/{endpoint.deployment}/{what}?api-version={API_VERSION}" \\\n'
        '  -H "Authorization: Bearer $TOKEN" \\\n'
        '  -H "Content-Type: application/json" \\\n'
        f"  -d '{body}'"
    )
