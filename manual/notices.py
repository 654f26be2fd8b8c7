"""Telling people of tasks: who may take one, who is given it or is late, and whoever asked for it."""

from collections.abc import Iterable
from datetime import datetime

from django.urls import reverse

from accounts.models import User
from manual.models import Task
from notices.actions import tell, tell_with_channels
from notices.kinds import NoticeKind
from notices.message import Message
from ui.amounts import capitalized, moment


def tell_open(task: Task, *, to: Iterable[User], now: datetime) -> None:
    """Tell platform leads and channels that something is to be carried out, inside the transaction that asks for it."""
    message = Message(
        title=f"To be carried out: {_what(task)}",
        sentence=(
            f"{task.wanted_by.name} asked for it, and a platform lead carries it out. Whoever does takes it first."
        ),
        facts=_facts(task, now=now),
        action="Open the task",
    )
    _tell(NoticeKind.TASK_OPEN, task, message, to=to, now=now)


def tell_late(task: Task, *, to: Iterable[User], now: datetime) -> None:
    """Tell whoever should have carried a task out, and who else is given, that its time is over."""
    who = (
        f"{task.assignee.name} has taken it" if task.assignee else "Nobody has taken it"
    )
    message = Message(
        title=f"Late: {_what(task)}",
        sentence=f"{who}, and it is not done yet. {task.wanted_by.name} waits for it.",
        facts=_facts(task, now=now),
        action="Open the task",
    )
    _tell(NoticeKind.TASK_LATE, task, message, to=to, now=now)


def tell_assignee(task: Task, *, by: User, now: datetime) -> None:
    """Tell somebody that a task is theirs, inside the transaction that gives it."""
    if task.assignee is None:
        return
    message = Message(
        title=f"For you: {_what(task)}",
        sentence=f"{by.name} gave you this task. {task.wanted_by.name} asked for it.",
        facts=_facts(task, now=now),
        action="Open the task",
    )
    tell(
        NoticeKind.TASK_ASSIGNED,
        to=[task.assignee],
        subject=("task", task.pk),
        link=reverse("task", args=[task.pk]),
        message=message,
        now=now,
    )


def tell_requester(task: Task, *, by: User, now: datetime) -> None:
    """Tell whoever asked what became of it, inside the transaction that says so."""
    if task.wanted_by_id == by.pk:
        return
    is_request = task.request_number is not None
    message = Message(
        title=_end_title(task),
        sentence=f"{by.name}: {task.note}{_consequence(task)}",
        facts=(
            ("Team", task.team.name),
            ("Request", str(task.request_number))
            if is_request
            else ("Place", task.place.cluster.title),
        ),
        action="Open the request" if is_request else "Open the team",
    )
    link = (
        reverse("request", args=[task.request_number])
        if is_request
        else reverse("team", args=[task.team.slug])
    )
    tell(
        NoticeKind.TASK_DONE,
        to=[task.wanted_by],
        subject=task.subject,
        link=link,
        message=message,
        now=now,
    )


def _end_title(task: Task) -> str:
    """ "A notebook with 1 × T4 could not be set up"."""
    is_done = task.state == Task.State.DONE
    if task.kind == Task.Kind.SET_APART:
        return f"The subscription {task.title} {'is there' if is_done else 'could not be made'}"
    verb = "set up" if task.kind == Task.Kind.SET_UP else "taken down"
    return f"{capitalized(task.title)} {'is' if is_done else 'could not be'} {verb}"


def _consequence(task: Task) -> str:
    """What follows from what could not be done."""
    if task.state == Task.State.DONE or task.kind == Task.Kind.TAKE_DOWN:
        return ""
    if task.kind == Task.Kind.SET_APART:
        return " Choose another level for the team."
    return " What was set aside for it is free again."


def _what(task: Task) -> str:
    """ "set up a notebook with 1 × T4 for Vision"."""
    words = f"{task.words[:1].lower()}{task.words[1:]}"
    return (
        words if task.kind == Task.Kind.SET_APART else f"{words} for {task.team.name}"
    )


def _facts(task: Task, *, now: datetime) -> tuple[tuple[str, str], ...]:
    due = [("To be carried out by", moment(task.due_at, now))] if task.due_at else []
    return (*task.lines, *due)


def _tell(
    kind: NoticeKind, task: Task, message: Message, *, to: Iterable[User], now: datetime
) -> None:
    about, link = ("task", task.pk), reverse("task", args=[task.pk])
    tell_with_channels(kind, to=to, subject=about, link=link, message=message, now=now)
