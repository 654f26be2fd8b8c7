"""Telling people of tasks: who may take one, who is given it or is late, and whoever asked for it."""

from collections.abc import Iterable
from datetime import datetime

from django.urls import reverse

from accounts.models import User
from approvals.fulfilment.words import what_to_do
from approvals.models import Task
from notices.actions import tell, tell_channels
from notices.kinds import NoticeKind
from notices.message import Message
from ui.amounts import moment


def tell_open(task: Task, *, to: Iterable[User], now: datetime) -> None:
    """Tell platform leads and channels that something is to be carried out, inside the transaction that asks for it."""
    message = Message(
        title=f"To be carried out: {_what(task)} for {task.team.name}",
        sentence=f"{task.asker.name} asked for it, and a platform lead carries it out. Whoever does takes it first.",
        facts=_facts(task, now=now),
        action="Open the task",
    )
    _tell(NoticeKind.TASK_OPEN, task, message, to=to, now=now)


def tell_late(task: Task, *, to: Iterable[User], now: datetime) -> None:
    """Tell whoever should have carried a task out, and who else is given, that its time is over."""
    who = f"{task.assignee.name} has taken it" if task.assignee else "Nobody has taken it"
    message = Message(
        title=f"Late: {_what(task)} for {task.team.name}",
        sentence=f"{who}, and it is not done yet. {task.asker.name} waits for it.",
        facts=_facts(task, now=now),
        action="Open the task",
    )
    _tell(NoticeKind.TASK_LATE, task, message, to=to, now=now)


def tell_assignee(task: Task, *, by: User, now: datetime) -> None:
    """Tell somebody that a task is theirs, inside the transaction that gives it."""
    if task.assignee is None:
        return
    message = Message(
        title=f"For you: {_what(task)} for {task.team.name}",
        sentence=f"{by.name} gave you this task. {task.asker.name} asked for it.",
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
    if task.asker.pk == by.pk:
        return
    if task.request is None:
        _tell_lead(task, by=by, now=now)
        return
    request, done = task.request, task.state == Task.State.DONE
    ends = {
        (Task.Kind.SET_UP, True): f"{request.given_name} is set up",
        (Task.Kind.SET_UP, False): f"{request.given_name} could not be set up",
        (Task.Kind.TAKE_DOWN, True): f"{request.given_name} is taken down",
        (Task.Kind.TAKE_DOWN, False): f"{request.given_name} could not be taken down",
    }
    freed = "" if done or task.kind != Task.Kind.SET_UP else " What was set aside for it is free again."
    message = Message(
        title=ends[Task.Kind(task.kind), done],
        sentence=f"{by.name}: {task.note}{freed}",
        facts=(("Team", request.team.name), ("Request", str(request.pk))),
        action="Open the request",
    )
    tell(
        NoticeKind.TASK_DONE,
        to=[request.requester],
        subject=("request", request.pk),
        link=reverse("request", args=[request.pk]),
        message=message,
        now=now,
    )


def _tell_lead(task: Task, *, by: User, now: datetime) -> None:
    done = task.state == Task.State.DONE
    message = Message(
        title=f"The subscription for {task.team.name} {'is there' if done else 'could not be made'}",
        sentence=f"{by.name}: {task.note}" + ("" if done else " Choose another level for the team."),
        facts=(("Team", task.team.name), ("Place", task.place.cluster.title)),
        action="Open the team",
    )
    tell(
        NoticeKind.TASK_DONE,
        to=[task.asker],
        subject=("tenancy", task.place.pk),
        link=reverse("team", args=[task.team.slug]),
        message=message,
        now=now,
    )


def _what(task: Task) -> str:
    name = f" {task.request.given_name}" if task.request is not None else ""
    return f"{task.get_kind_display().lower()}{name}"


def _facts(task: Task, *, now: datetime) -> tuple[tuple[str, str], ...]:
    due = [("To be carried out by", moment(task.due_at, now))] if task.due_at else []
    return (*what_to_do(task), *due)


def _tell(kind: NoticeKind, task: Task, message: Message, *, to: Iterable[User], now: datetime) -> None:
    about, link = ("task", task.pk), reverse("task", args=[task.pk])
    tell(kind, to=to, subject=about, link=link, message=message, now=now)
    tell_channels(kind, subject=about, link=link, message=message, now=now)
