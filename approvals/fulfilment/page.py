"""Tasks as pages show them: who asked for what, since when, what to do, and what one can do about it."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypedDict

from django.db.models import Q, QuerySet
from django.urls import reverse

from accounts import people
from accounts.models import User
from accounts.roles import Permission
from approvals.models import Request
from manual.models import Task
from provisioning.models import Isolation, Tenancy
from ui.amounts import ago, moment
from ui.parts import Columns, Fact, Row

TONES = {
    "open": "waiting",
    "taken": "moving",
    "done": "good",
    "failed": "bad",
    "dropped": "past",
}
APART_WORDS = {
    "open": "Own subscription asked for",
    "taken": "Own subscription being made",
    "done": "Own subscription is there",
    "failed": "Own subscription could not be made",
    "dropped": "Own subscription not needed",
}
TABS = {"open": "To be done", "mine": "Mine", "over": "Over"}
COLUMNS: Columns = ["Task", "Team", "State", "Until", {"label": "Since", "kind": "end"}]
MOST_SHOWN = 100
MOST_ON_HOME = 5


class TaskForms(TypedDict):
    """What somebody can do about a task, and whom they can give it to."""

    may: bool
    may_take: bool
    others: Sequence[User]


class TaskPage(TaskForms):
    """The page of a task."""

    task: Task
    title: str
    tone: str
    sentence: str
    facts: Sequence[Fact]


class RequestTask(TypedDict):
    """A task on the page of the request that it is carried out for."""

    task: Task
    title: str
    tone: str
    sentence: str
    may: bool
    may_take: bool


class Apart(TypedDict):
    """How far setting a team apart is."""

    tone: str
    word: str
    text: str
    href: str


class ToDo(TypedDict):
    """A task on the home page of who can carry it out."""

    title: str
    href: str
    since: datetime
    team: str
    mine: bool


def rows_of(tab: str, user: User) -> QuerySet[Task]:
    """The tasks of a tab: what is to be done oldest first, what is over newest first."""
    rows = Task.objects.described()
    if tab == "over":
        return rows.exclude(state__in=[Task.State.OPEN, Task.State.TAKEN]).order_by(
            "-done_at", "-pk"
        )
    open_ones = rows.filter(pk__in=Task.objects.unfinished().values("pk"))
    return open_ones.filter(assignee=user) if tab == "mine" else open_ones


def row(task: Task, *, now: datetime) -> Row:
    """A line of the list."""
    who = task.assignee.name if task.assignee else "nobody yet"
    since = task.done_at if task.is_over and task.done_at else task.created_at
    return {
        "cells": [
            {
                "text": task.words,
                "sub": task.instruction,
                "href": reverse("task", args=[task.pk]),
            },
            {"text": task.team.name, "sub": task.wanted_by.name},
            {"tone": TONES[task.state], "word": task.get_state_display(), "sub": who},
            moment(task.until, now) if task.until else "–",
            ago(since, now),
        ]
    }


def context(task: Task, *, viewer: User) -> TaskPage:
    """Everything that the page of a task needs."""
    return {
        "task": task,
        "title": task.words,
        "tone": TONES[task.state],
        "sentence": task.instruction,
        "facts": [
            *(Fact(label=label, text=text) for label, text in task.whereabouts),
            *([Fact(label="Until", at=task.until)] if task.until else []),
            {
                "label": "Asked by",
                "person": {
                    "name": task.wanted_by.name,
                    "initials": task.wanted_by.initials,
                },
            },
            _of(task),
            {"label": "Asked for since", "at": task.created_at},
            *(
                [Fact(label="To be carried out by", at=task.due_at)]
                if task.due_at
                else []
            ),
            *([Fact(label="Taken", at=task.taken_at)] if task.taken_at else []),
            *([Fact(label="Over", at=task.done_at)] if task.done_at else []),
        ],
        **forms_of(task, viewer=viewer),
    }


def _of(task: Task) -> Fact:
    """Where it comes from, as a link."""
    number = task.request_number
    if number is None:
        return {
            "label": "Level",
            "text": "Own subscription",
            "href": reverse("tenancy-shares", args=[task.place.pk]),
        }
    return {
        "label": "Request",
        "text": str(number),
        "href": reverse("request", args=[number]),
    }


def forms_of(task: Task, *, viewer: User) -> TaskForms:
    """What this person can do about a task, and whom they can give it to."""
    may = viewer.may(Permission.DECIDE_AS_PLATFORM) and not task.is_over
    leads = (
        people.holding(Permission.DECIDE_AS_PLATFORM)
        .exclude(pk=task.assignee_id or 0)
        .order_by("name", "pk")
    )
    return {
        "may": may,
        "may_take": may and task.assignee_id != viewer.pk,
        "others": list(leads.exclude(pk=viewer.pk)[:MOST_SHOWN]) if may else [],
    }


def of_request(tasks: Iterable[Task], *, viewer: User) -> list[RequestTask]:
    """The tasks of a request as its page shows them, with what a platform lead can do."""
    may = viewer.may(Permission.DECIDE_AS_PLATFORM)
    return [
        {
            "task": task,
            "title": task.words,
            "tone": TONES[task.state],
            "sentence": task.instruction,
            "may": may and not task.is_over,
            "may_take": may and not task.is_over and task.assignee_id != viewer.pk,
        }
        for task in tasks
    ]


def lost(request: Request, tasks: Iterable[Task]) -> str:
    """What is gone when a request is let go of, for the question before it."""
    if any(task.kind == Task.Kind.SET_UP and not task.is_over for task in tasks):
        return "Nobody sets it up any more; it has cost nothing."
    spec = request.asked
    asks = "" if request.why_orphaned else f"asks {request.requester.name}, then "
    who = f"A platform lead {asks}takes {spec.thing()} down{spec.gone_with_it()}."
    return f"{who} What it will not cost is free again."


def of_tenancies(tenancies: Iterable[Tenancy], *, viewer: User) -> dict[int, Apart]:
    """How the newest task to set a team apart stands, by tenancy; one query, and none where nobody is to be."""
    apart = [row.pk for row in tenancies if row.isolation == Isolation.SUBSCRIPTION]
    rows: Iterable[Task] = (
        Task.objects.filter(tenancy__in=apart).select_related("assignee").order_by("pk")
    )
    href = viewer.may(Permission.DECIDE_AS_PLATFORM)
    return {
        row.tenancy_id or 0: {
            "tone": TONES[row.state],
            "word": APART_WORDS[row.state],
            "text": _apart_text(row),
            "href": reverse("task", args=[row.pk]) if href else "",
        }
        for row in (rows if apart else ())
    }


def _apart_text(task: Task) -> str:
    if task.is_over:
        return f"{task.assignee.name}: {task.note}" if task.assignee else ""
    who = (
        f"{task.assignee.name} makes it."
        if task.assignee
        else "The platform leads were asked to make it."
    )
    return f"{who} Until it is there, the team works on here."


def to_do(user: User) -> list[ToDo]:
    """The oldest unfinished tasks that are nobody's or this person's, for their home page."""
    rows = rows_of("open", user).filter(Q(assignee=None) | Q(assignee=user))
    return [
        {
            "title": task.words,
            "href": reverse("task", args=[task.pk]),
            "since": task.created_at,
            "team": task.team.name,
            "mine": task.assignee_id == user.pk,
        }
        for task in rows[:MOST_ON_HOME]
    ]
