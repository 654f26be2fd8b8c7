"""How far a team's coming on board is: object by object, and against the promise of seconds."""

from datetime import datetime, timedelta
from typing import TypedDict

from django.urls import reverse

from accounts.models import Team, User
from accounts.roles import Permission
from approvals.models import Request
from fleet.models import Cluster
from onboarding.checklist import away_words, checklist, trouble_of
from onboarding.images import access_of, checklist_item
from onboarding.models import Onboarding
from provisioning.models import Tenancy
from ui.parts import Checklist

PROMISE = timedelta(seconds=30)


class Progress(TypedDict):
    """How far a team's coming on board is; `took` are its seconds, empty until all is settled."""

    onboarding: Onboarding
    team: Team
    tenancy: Tenancy
    cluster: Cluster
    checklist: Checklist
    ready: int
    total: int
    settled: bool
    took: str
    since: timedelta
    failed: bool
    trouble: str
    late: bool
    retry: str
    may_ask: bool
    state: tuple[str, str]
    first: Request | None
    promise: int
    late_words: str


def progress_of(onboarding: Onboarding, *, by: User, now: datetime) -> Progress:
    """Everything the progress page shows; `onboarding` comes with its team, tenancy, cluster and request."""
    tenancy, took = onboarding.tenancy, onboarding.seconds
    is_theirs = tenancy.team_id in by.team_ids
    may_retry = is_theirs or by.may(Permission.MANAGE_CLUSTERS)
    retry = reverse("look-again", args=[tenancy.pk]) if may_retry else ""
    listed = checklist(tenancy, title=tenancy.cluster.title, retry=retry)
    trouble = trouble_of(tenancy, listed) or away_words(tenancy.cluster, by=by)
    objects = len(listed["items"])
    ready = sum(item["tone"] == "good" for item in listed["items"])
    access = access_of(onboarding.team)
    if access is not None:
        # Nothing on the cluster waits for it, so it is listed, and not counted with what the promise is about.
        listed["items"].append(checklist_item(access))
    return {
        "onboarding": onboarding,
        "team": onboarding.team,
        "tenancy": tenancy,
        "cluster": tenancy.cluster,
        "checklist": listed,
        "ready": ready,
        "total": objects,
        "settled": took is not None,
        "took": f"{took:.1f}" if took is not None else "",
        "since": now - onboarding.submitted_at,
        "failed": any(item["tone"] == "bad" for item in listed["items"]),
        "trouble": trouble,
        "late": took is None and now - onboarding.submitted_at > PROMISE,
        "retry": retry,
        "may_ask": is_theirs or by.may(Permission.ONBOARD_ANY_GROUP),
        "state": _state(onboarding),
        "first": onboarding.request,
        "promise": int(PROMISE.total_seconds()),
        "late_words": f"It takes longer than promised: {tenancy.ready['message']}",
    }


def _state(onboarding: Onboarding) -> tuple[str, str]:
    tenancy = onboarding.tenancy
    if tenancy.is_settled:
        return "good", "On board"
    if tenancy.has_failed:
        return "bad", "Failed"
    return "moving", "Setting up"
