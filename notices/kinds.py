"""What people are told about, how soon, and by which way: pure, one table."""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum


class NoticeKind(StrEnum):
    """What a notice is about; the value is stored for ever."""

    REQUEST_WAITING = "request_waiting"
    REQUEST_DECIDED = "request_decided"
    REQUEST_ASKED_BACK = "request_asked_back"
    REQUEST_ANSWERED = "request_answered"
    REQUEST_COMMENTED = "request_commented"
    REQUEST_REMINDER = "request_reminder"
    REQUEST_ESCALATED = "request_escalated"
    REQUEST_LAPSED = "request_lapsed"
    REQUEST_WITHDRAWN = "request_withdrawn"
    REQUEST_OFFERED_AGAIN = "request_offered_again"
    REQUEST_REROUTED = "request_rerouted"
    STAND_IN = "stand_in"
    TASK_OPEN = "task_open"
    TASK_LATE = "task_late"
    TASK_ASSIGNED = "task_assigned"
    TASK_DONE = "task_done"
    ALLOCATION_ENDING = "allocation_ending"
    GPUS_IDLE = "gpus_idle"
    BOOKING_BLOCKED = "booking_blocked"
    WORK_STOPPED = "work_stopped"
    ENDS_HELD_BACK = "ends_held_back"
    BUDGET_SOFT = "budget_soft"
    COST_CENTRE_JOINED = "cost_centre_joined"
    TEAM_OWNED = "team_owned"
    POLICY_WAITS = "policy_waits"
    POLICY_ACTIVATED = "policy_activated"
    TEAM_LEAVES = "team_leaves"
    DRIFT_WAITING = "drift_waiting"
    CLUSTER_ANNOUNCED = "cluster_announced"
    CLUSTER_AWAY = "cluster_away"
    CLUSTER_BRAKED = "cluster_braked"
    TENANCY_PARKED = "tenancy_parked"
    DIRECTORY_BRAKED = "directory_braked"
    SEAT_EMPTY = "seat_empty"
    RUN_ENDED = "run_ended"
    RUN_ENDING = "run_ending"
    RUN_BLOCKED = "run_blocked"
    RUN_PARKED = "run_parked"
    NOTEBOOK_ENDED = "notebook_ended"
    NOTEBOOK_IDLE = "notebook_idle"
    SERVICE_LEVEL = "service_level"
    LIMIT_NEAR = "limit_near"
    PRICE_DOUBTED = "price_doubted"
    RESERVATION_ORPHANED = "reservation_orphaned"
    RESERVATION_BLOCKED = "reservation_blocked"
    MODEL_BLOCKED = "model_blocked"
    QUOTA_ANSWERED = "quota_answered"
    CHANNEL_OFF = "channel_off"
    EVENT = "event"
    TEST = "test"

    @property
    def words(self) -> str:
        """The kind as the page of preferences says it."""
        return WORDS[self]

    @property
    def channel_words(self) -> str:
        """The kind as a channel is told of it, where nobody is "you"."""
        return CHANNEL_WORDS.get(self, WORDS[self])

    @property
    def default(self) -> "Pace":
        """How soon somebody is told who has chosen nothing."""
        return Pace.DIGEST if self in DIGESTED else Pace.AT_ONCE


class Pace(StrEnum):
    """How soon a person wants to be told."""

    AT_ONCE = "at_once"
    DIGEST = "digest"
    NONE = "none"

    @property
    def words(self) -> str:
        """The pace as a choice."""
        return {
            "at_once": "At once",
            "digest": "In the daily mail",
            "none": "Not at all",
        }[self.value]


class Way(StrEnum):
    """How a message goes out."""

    EMAIL = "email"
    TEAMS = "teams"
    SLACK = "slack"
    WEBHOOK = "webhook"
    BACKSTAGE = "backstage"

    @property
    def words(self) -> str:
        """The way by its name."""
        return "E-mail" if self is Way.EMAIL else self.value.capitalize()


WORDS: Mapping[NoticeKind, str] = {
    NoticeKind.REQUEST_WAITING: "A request waits for your decision",
    NoticeKind.REQUEST_DECIDED: "Your request was decided",
    NoticeKind.REQUEST_ASKED_BACK: "Somebody asks about your request",
    NoticeKind.REQUEST_ANSWERED: "Your question was answered",
    NoticeKind.REQUEST_COMMENTED: "Somebody commented on a request you take part in",
    NoticeKind.REQUEST_REMINDER: "A decision of yours is late",
    NoticeKind.REQUEST_ESCALATED: "A request was passed on to you",
    NoticeKind.REQUEST_LAPSED: "Your request lapsed, because nobody decided in time",
    NoticeKind.REQUEST_WITHDRAWN: "A request that waited for you was taken back",
    NoticeKind.REQUEST_OFFERED_AGAIN: "What you asked for has become free",
    NoticeKind.REQUEST_REROUTED: "A new policy has other people decide your request, or one that waited for you",
    NoticeKind.STAND_IN: "Somebody names you as their stand-in, or answers you",
    NoticeKind.TASK_OPEN: "Work waits for a platform lead to carry it out",
    NoticeKind.TASK_LATE: "Work that a person carries out is late",
    NoticeKind.TASK_ASSIGNED: "Work was assigned to you",
    NoticeKind.TASK_DONE: "Work for your request was done",
    NoticeKind.ALLOCATION_ENDING: "GPUs of your team end soon, were taken back, or yours given back by others",
    NoticeKind.GPUS_IDLE: "No work uses GPUs that your team holds",
    NoticeKind.BOOKING_BLOCKED: "Something stands in the way of what your team has booked",
    NoticeKind.WORK_STOPPED: "Work of your team runs on GPUs it no longer holds, or was stopped",
    NoticeKind.ENDS_HELD_BACK: "Many GPUs would end at once, and wait for a person",
    NoticeKind.BUDGET_SOFT: "Your team's budget is nearly used up",
    NoticeKind.COST_CENTRE_JOINED: "A team spends on a cost centre that you answer for",
    NoticeKind.TEAM_OWNED: "You answer for a team from now on, or no more",
    NoticeKind.POLICY_WAITS: "A draft of the policy waits for you to put it in force",
    NoticeKind.POLICY_ACTIVATED: "A policy is in force, is to come, or was cancelled",
    NoticeKind.TEAM_LEAVES: "Your team leaves a cluster, or is restored",
    NoticeKind.DRIFT_WAITING: "A change on a cluster waits for your decision",
    NoticeKind.CLUSTER_ANNOUNCED: "A cluster of your team is maintained, has an announcement, or takes no new requests",
    NoticeKind.CLUSTER_AWAY: "A cluster does not answer or refuses the portal, or is back",
    NoticeKind.CLUSTER_BRAKED: "Repairs on a cluster have stopped",
    NoticeKind.TENANCY_PARKED: "A team's place on a cluster is tried no more",
    NoticeKind.DIRECTORY_BRAKED: "The directory would take access from too many people at once",
    NoticeKind.SEAT_EMPTY: "A request waits for a seat that nobody has",
    NoticeKind.RUN_ENDED: "A run that you submitted has ended",
    NoticeKind.RUN_ENDING: "A run that you submitted is about to reach its time limit",
    NoticeKind.RUN_BLOCKED: "A run that you submitted waits for another run for more than a day",
    NoticeKind.RUN_PARKED: "A run is tried no more",
    NoticeKind.NOTEBOOK_ENDED: "A notebook of yours, or of a team that you lead, did not start or was stopped",
    NoticeKind.NOTEBOOK_IDLE: "A notebook of yours is idle, or ends soon",
    NoticeKind.SERVICE_LEVEL: "A service of a team that you lead uses up its error budget, or is slower than promised",
    NoticeKind.LIMIT_NEAR: "A limit of Azure's comes near",
    NoticeKind.RESERVATION_ORPHANED: "A reservation in Azure is orphaned",
    NoticeKind.RESERVATION_BLOCKED: "Azure does not let the portal make or release a reservation",
    NoticeKind.MODEL_BLOCKED: "Azure does not let the portal deploy or delete a model",
    NoticeKind.QUOTA_ANSWERED: "Azure answers a request for more quota",
    NoticeKind.PRICE_DOUBTED: "A list price of Azure's moved so far that nobody believes it yet",
    NoticeKind.CHANNEL_OFF: "A webhook was switched off, because its receiver wants nothing any more",
    NoticeKind.EVENT: "An event of a webhook",
    NoticeKind.TEST: "A test",
}
CHANNEL_WORDS: Mapping[NoticeKind, str] = {
    NoticeKind.REQUEST_WAITING: "A request waits for a decision",
    NoticeKind.REQUEST_DECIDED: "A request was decided",
    NoticeKind.REQUEST_ASKED_BACK: "Somebody asks about a request",
    NoticeKind.REQUEST_ANSWERED: "A question about a request was answered",
    NoticeKind.REQUEST_COMMENTED: "Somebody commented on a request",
    NoticeKind.REQUEST_REMINDER: "A decision is late",
    NoticeKind.REQUEST_ESCALATED: "A request was passed on to the next level",
    NoticeKind.REQUEST_LAPSED: "A request lapsed, because nobody decided in time",
    NoticeKind.REQUEST_WITHDRAWN: "A request was taken back",
    NoticeKind.REQUEST_OFFERED_AGAIN: "What was asked for has become free",
    NoticeKind.REQUEST_REROUTED: "A new policy has other people decide a request",
    NoticeKind.ALLOCATION_ENDING: "GPUs of a team end soon",
    NoticeKind.GPUS_IDLE: "No work uses GPUs that a team holds",
    NoticeKind.BOOKING_BLOCKED: "Something stands in the way of what a team has booked",
    NoticeKind.WORK_STOPPED: "Work of a team runs on GPUs it no longer holds, or was stopped",
    NoticeKind.ENDS_HELD_BACK: "Many GPUs would end at once, and wait for a person",
    NoticeKind.BUDGET_SOFT: "A team's budget is nearly used up",
    NoticeKind.SERVICE_LEVEL: "A service uses up its error budget, or is slower than promised",
    NoticeKind.CLUSTER_ANNOUNCED: "A cluster is maintained or has an announcement",
    NoticeKind.DRIFT_WAITING: "A change on a cluster waits for a decision",
    NoticeKind.TEAM_LEAVES: "A team leaves a cluster, or is restored",
}
# The title of what platform leads alone are told.
OF_LEADS = "The platform"
# As the page of preferences groups them.
GROUPS: Mapping[str, tuple[NoticeKind, ...]] = {
    "Your requests": (
        NoticeKind.REQUEST_DECIDED,
        NoticeKind.REQUEST_ASKED_BACK,
        NoticeKind.REQUEST_COMMENTED,
        NoticeKind.REQUEST_LAPSED,
        NoticeKind.REQUEST_OFFERED_AGAIN,
        NoticeKind.TASK_DONE,
        NoticeKind.REQUEST_REROUTED,
        NoticeKind.SEAT_EMPTY,
        NoticeKind.POLICY_ACTIVATED,
    ),
    "What your team has and runs": (
        NoticeKind.ALLOCATION_ENDING,
        NoticeKind.GPUS_IDLE,
        NoticeKind.BOOKING_BLOCKED,
        NoticeKind.WORK_STOPPED,
        NoticeKind.RUN_ENDED,
        NoticeKind.RUN_ENDING,
        NoticeKind.RUN_BLOCKED,
        NoticeKind.NOTEBOOK_ENDED,
        NoticeKind.NOTEBOOK_IDLE,
        NoticeKind.SERVICE_LEVEL,
        NoticeKind.BUDGET_SOFT,
        NoticeKind.CLUSTER_ANNOUNCED,
        NoticeKind.COST_CENTRE_JOINED,
        NoticeKind.TEAM_OWNED,
        NoticeKind.TEAM_LEAVES,
    ),
    "What you decide and carry out": (
        NoticeKind.REQUEST_WAITING,
        NoticeKind.REQUEST_ANSWERED,
        NoticeKind.REQUEST_REMINDER,
        NoticeKind.REQUEST_ESCALATED,
        NoticeKind.REQUEST_WITHDRAWN,
        NoticeKind.POLICY_WAITS,
        NoticeKind.STAND_IN,
        NoticeKind.TASK_OPEN,
        NoticeKind.TASK_ASSIGNED,
        NoticeKind.TASK_LATE,
    ),
    OF_LEADS: (
        NoticeKind.ENDS_HELD_BACK,
        NoticeKind.DRIFT_WAITING,
        NoticeKind.CLUSTER_AWAY,
        NoticeKind.CLUSTER_BRAKED,
        NoticeKind.TENANCY_PARKED,
        NoticeKind.RUN_PARKED,
        NoticeKind.DIRECTORY_BRAKED,
        NoticeKind.LIMIT_NEAR,
        NoticeKind.QUOTA_ANSWERED,
        NoticeKind.RESERVATION_ORPHANED,
        NoticeKind.RESERVATION_BLOCKED,
        NoticeKind.MODEL_BLOCKED,
        NoticeKind.PRICE_DOUBTED,
        NoticeKind.CHANNEL_OFF,
    ),
}
DIGESTED = frozenset(
    {
        NoticeKind.REQUEST_COMMENTED,
        NoticeKind.REQUEST_WITHDRAWN,
        NoticeKind.TASK_DONE,
        NoticeKind.BUDGET_SOFT,
        NoticeKind.GPUS_IDLE,
        NoticeKind.RUN_BLOCKED,
        NoticeKind.POLICY_ACTIVATED,
    }
)
# A test goes out because somebody pressed a button, and events are chosen one by one: there is nothing to choose.
CHOOSABLE = tuple(
    kind for kind in NoticeKind if kind not in (NoticeKind.TEST, NoticeKind.EVENT)
)
# What one person alone has to do or to know.
PERSONAL = frozenset(
    {
        NoticeKind.STAND_IN,
        NoticeKind.TASK_ASSIGNED,
        NoticeKind.TASK_DONE,
        NoticeKind.COST_CENTRE_JOINED,
        NoticeKind.TEAM_OWNED,
        NoticeKind.RUN_ENDED,
        NoticeKind.RUN_ENDING,
        NoticeKind.RUN_BLOCKED,
        NoticeKind.NOTEBOOK_ENDED,
        NoticeKind.NOTEBOOK_IDLE,
    }
)
TOLD_TO_CHANNELS = tuple(kind for kind in CHOOSABLE if kind not in PERSONAL)
# Who has chosen nothing gets the first of these at once and what follows it in one mail, this much later.
GATHERED = frozenset({NoticeKind.REQUEST_WAITING})
GATHERED_FOR = timedelta(minutes=10)
USUAL_HOUR = 8
