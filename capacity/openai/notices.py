"""What people are told about models of Azure OpenAI."""

from datetime import datetime

from django.urls import reverse

from capacity.openai.models import ModelAccount
from capacity.openai.states import State
from notices.kinds import NoticeKind
from notices.leads import tell_leads
from notices.message import Message


def tell_blocked(account: ModelAccount, *, why: str, now: datetime) -> None:
    """Tell platform leads and their channels that Azure keeps the portal from what it wants, with Azure's words."""
    goes = account.state == State.DELETING
    message = Message(
        f"Azure does not let the portal {'delete' if goes else 'deploy'} a model",
        f"{why} The portal tries again by itself, and at once when you have it tried again on the page of the model's "
        f"request. {'Until then it can still be called.' if goes else 'What was granted with it waits.'}",
        facts=(
            ("Team", account.team.name),
            ("Account", f"Azure OpenAI in {account.region}"),
        ),
        action="Open the request",
    )
    tell_leads(
        NoticeKind.MODEL_BLOCKED,
        subject=("model_account", account.pk),
        link=_link(account),
        message=message,
        now=now,
    )


def _link(account: ModelAccount) -> str:
    """Where the newest of its models is told that is not as wanted."""
    rows = account.endpoints.filter(deleted_at=None).order_by("-pk")
    found = next((row for row in rows if not row.is_true), None)
    if found is None:
        return reverse("team", args=[account.team.slug])
    return reverse("model-endpoint", args=[found.pk])
