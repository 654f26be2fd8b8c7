"""What an explanation says: its outlook, sentences, and at most one next step for a page to make a button of. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from workloads.estimating import Estimate


class Outlook(StrEnum):
    """Whether waiting helps: it starts by itself, you change something, somebody else acts, or it does not start."""

    WAIT = "wait"
    CHANGE = "change"
    ESCALATE = "escalate"
    NEVER = "never"


class Action(StrEnum):
    """What a next step does."""

    REQUEST_GPUS = "request_gpus"
    USE_FLAVOR = "use_flavor"
    RUN_AGAIN = "run_again"
    RESUME = "resume"
    CHANGE_RUN = "change_run"
    STOP_JOB = "stop_job"
    OPEN_REQUEST = "open_request"
    OPEN_RUN = "open_run"
    RENEW = "renew"
    SHOW_LOGS = "show_logs"


@dataclass(frozen=True, slots=True)
class Step:
    """One next step: what it does, the words on its button, and what it is filled in with."""

    action: Action
    label: str
    data: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What one reason found. `at` is when it goes on where Kueue says so, `in_line` whether it has a place in a line.

    `stands_still` says that nobody in that line starts now; `detail` quotes Kubernetes for experts.
    """

    code: str
    outlook: Outlook
    what: str
    do: str
    since: datetime | None = None
    at: datetime | None = None
    when: str = ""
    in_line: bool = False
    stands_still: bool = False
    step: Step | None = None
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """Why a job does not run: what, since when, where in line, when it starts, and what you can do.

    Every sentence is there, also where its answer is that nobody can know. `code` is stable and names the reason.
    While nothing changes it holds before `until`, for ever where that is None; only what is by history, which is when
    it starts, moves on with the time. At `latest_at` what is ahead of it is over, by the time limits of all of it.
    """

    code: str
    outlook: Outlook
    what: str
    since: datetime
    line: str
    when: str
    do: str
    step: Step | None = None
    position: int | None = None
    at: datetime | None = None
    estimate: Estimate | None = None
    is_by_history: bool = False
    latest_at: datetime | None = None
    detail: str = ""
    until: datetime | None = None
