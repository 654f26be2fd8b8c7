"""What an account of Azure OpenAI and the deployments in it are called: always the same, and nobody else's. Pure.

An account's name is the first part of its address, too, which is unique in the whole world and one label of DNS.
https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules
"""

MAX_LABEL = 63
# The tag that bears its number.
NUMBER = "quartermaster-model-account"
STANDARD, GLOBAL = "Standard", "GlobalStandard"


def account_name(number: int, *, mark: str, team: str) -> str:
    """The account: "qm-1a2b3c4d-vision-17". A long name of a team is cut; mark and number alone are unique."""
    first, last = f"qm-{mark}-", f"-{number}"
    room = max(0, MAX_LABEL - len(first) - len(last))
    return f"{first}{team[:room].strip('-')}{last}"


def deployment_name(model: str, sku: str) -> str:
    """A deployment in its account: "gpt-4o", or "gpt-4o_global" where any region may answer.

    No name of a model has an underscore.
    """
    return model if sku == STANDARD else f"{model}_{sku.removesuffix(STANDARD).lower()}"
