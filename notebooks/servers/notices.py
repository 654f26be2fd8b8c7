"""What people are told about notebook servers."""

from datetime import datetime

from django.urls import reverse

from accounts.models import Membership
from notebooks.servers.models import NotebookServer
from notebooks.servers.states import StopReason
from notices.actions import tell
from notices.kinds import NoticeKind
from notices.message import Message
from ui.amounts import ahead, gpus, moment, span, usd


def tell_failed(server: NotebookServer, *, now: datetime) -> None:
    """Tell who launched a server that it did not start, and why."""
    _tell(
        NoticeKind.NOTEBOOK_ENDED,
        server,
        Message(
            f"{server.title} did not start",
            server.message or "The hub says no reason.",
            facts=_facts(server, now),
            action="Open the notebook",
        ),
        now=now,
    )


def tell_stopped(server: NotebookServer, *, now: datetime) -> None:
    """Tell who launched a server that it was stopped, and why; leads of its team, where that person has left.

    Who stopped it themselves knows, and so does who stopped one of a person who has left.
    """
    is_by_person = server.stop_reason == StopReason.PERSON
    if is_by_person and (
        server.stopped_by_id == server.owner_id or not server.owner.is_active
    ):
        return
    if not server.owner.is_active:
        _tell_leads(server, "has no access to the portal any more", now=now)
        return
    if not _sees_page(server):
        _tell_leads(server, "is no longer of the team", now=now)
    _tell(
        NoticeKind.NOTEBOOK_ENDED,
        server,
        Message(
            f"{server.title} was stopped",
            f"{_why_stopped(server)} Its volumes stay.",
            facts=_facts(server, now),
            action="Open the notebook" if _sees_page(server) else "Open the portal",
        ),
        now=now,
    )


def tell_idle(
    server: NotebookServer, *, idle: str, cost: str, ends: str, now: datetime
) -> None:
    """Tell who launched a server how long it is idle, what that cost, and when it is stopped."""
    _tell(
        NoticeKind.NOTEBOOK_IDLE,
        server,
        Message(
            f"{server.title} is idle",
            f"Nobody has used it for {idle}{cost}. {ends}",
            facts=_facts(server, now),
            action="Keep it or stop it",
        ),
        now=now,
    )


def tell_ends(
    server: NotebookServer, at: datetime, sentence: str, *, now: datetime
) -> None:
    """Tell who launched a server when it is stopped, and why."""
    _tell(
        NoticeKind.NOTEBOOK_IDLE,
        server,
        Message(
            f"{server.title} ends in {ahead(at, now)}",
            sentence,
            facts=(*_facts(server, now), ("Ends", moment(at, now))),
            action="Open the notebook",
        ),
        now=now,
    )


def _facts(server: NotebookServer, now: datetime) -> tuple[tuple[str, str], ...]:
    found = [("Team", server.team.name), ("Cluster", server.cluster.title)]
    if server.flavor is not None:
        found.append(("GPUs", gpus(server.gpus, server.flavor.kind)))
    if server.ran(now).total_seconds() >= 60:
        found += [("Ran for", span(server.ran(now))), ("Cost", usd(server.cost(now)))]
    return tuple(found)


def _sees_page(server: NotebookServer) -> bool:
    """Whether its owner sees its page: not after leaving its team."""
    return server.stop_reason != StopReason.NOT_A_MEMBER


def _why_stopped(server: NotebookServer) -> str:
    if not _sees_page(server):
        return "You are no longer of its team."
    if server.stopped_by is not None:
        return f"{server.stopped_by.name} stopped it."
    return StopReason(server.stop_reason).words


def _tell_leads(server: NotebookServer, why: str, *, now: datetime) -> None:
    who = server.owner.name
    held = (
        " GPUs that are held for it cost on until they are given back."
        if server.gpus
        else ""
    )
    leads = Membership.objects.filter(team=server.team_id, part=Membership.Part.LEAD)
    tell(
        NoticeKind.NOTEBOOK_ENDED,
        to=[one.user for one in leads.select_related("user")],
        subject=("notebook", server.pk),
        link=reverse("notebook", args=[server.pk]),
        message=Message(
            f"{server.title} of {who} was stopped",
            f"{who} {why}. What is saved on its volumes stays.{held}",
            facts=_facts(server, now),
            action="Open the notebook",
        ),
        now=now,
    )


def _tell(
    kind: NoticeKind, server: NotebookServer, message: Message, *, now: datetime
) -> None:
    tell(
        kind,
        to=[server.owner],
        subject=("notebook", server.pk),
        link=reverse("notebook", args=[server.pk])
        if _sees_page(server)
        else reverse("home"),
        message=message,
        now=now,
    )
