"""A half-filled wizard: kept in the session under a key that the address carries, so that two tabs are two drafts."""

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any

from django.contrib.sessions.backends.base import SessionBase
from django.urls import reverse

from fleet.models import Cluster, Flavor
from onboarding.actions import Enrolment, Start
from onboarding.forms import StartForm
from web.refusals import BadInput

STEPS = {"who": "Who", "where": "Where", "start": "Start", "review": "Review"}
MOST_DRAFTS = 5
SESSION = "onboarding_drafts"


@dataclass(frozen=True)
class Draft:
    """What was said so far; values are kept as they were typed."""

    key: str
    done: tuple[str, ...] = ()
    group_name: str = ""
    values: Mapping[str, str] = field(default_factory=dict)

    def url(self, step: str) -> str:
        """The address of a step of this draft."""
        return f"{reverse('onboard')}?draft={self.key}&step={step}"

    @property
    def url_who(self) -> str:
        """The first step."""
        return self.url("who")

    @property
    def url_where(self) -> str:
        """The second step."""
        return self.url("where")

    @property
    def url_start(self) -> str:
        """The third step."""
        return self.url("start")

    @property
    def url_review(self) -> str:
        """The last step."""
        return self.url("review")

    @property
    def url_preview(self) -> str:
        """Where the third step's answer comes from while it is filled in."""
        return f"{reverse('onboard-preview')}?draft={self.key}"

    @property
    def next_step(self) -> str:
        """The first step that is not done yet."""
        return next((step for step in STEPS if step not in self.done), "review")

    def with_step(
        self, step: str, values: Mapping[str, str], *, group_name: str = ""
    ) -> "Draft":
        """The draft with a step's values taken; later steps that depended on others' values are asked again."""
        merged = {**self.values, **values}
        done = [s for s in STEPS if s in self.done or s == step]
        if step == "where" and self.values.get("cluster") != merged.get("cluster"):
            done = [s for s in done if s != "start"]
        return replace(
            self,
            done=tuple(done),
            values=merged,
            group_name=group_name or self.group_name,
        )


def new_draft() -> Draft:
    """An empty draft with a key nobody can guess; the key is also what makes sending it twice harmless."""
    return Draft(secrets.token_urlsafe(12))


def load(session: SessionBase, key: str) -> Draft | None:
    """The draft of this key, if this session has it."""
    stored = session.get(SESSION, {}).get(key)
    if stored is None:
        return None
    known = {f.name for f in fields(Draft)}
    return Draft(
        **{
            **{k: v for k, v in stored.items() if k in known},
            "done": tuple(stored["done"]),
        }
    )


def save(session: SessionBase, draft: Draft) -> None:
    """Keep a draft; the oldest one goes when there are too many."""
    drafts = {
        key: row for key, row in session.get(SESSION, {}).items() if key != draft.key
    }
    drafts[draft.key] = asdict(draft)
    session[SESSION] = dict(list(drafts.items())[-MOST_DRAFTS:])


def start_of(values: Mapping[str, Any], *, now: datetime) -> Start | None:
    """The first ask of a start form's cleaned values; None for none."""
    flavor = values.get("flavor")
    if not isinstance(flavor, Flavor) or not values.get("gpus"):
        return None
    return Start(
        flavor=flavor,
        gpus=int(values["gpus"]),
        until=now + timedelta(days=int(values["days"])),
        purpose=str(values.get("purpose") or "training"),
        reason=str(values.get("reason") or ""),
    )


def enrolment_of(draft: Draft, *, now: datetime) -> Enrolment:
    """The draft as the action takes it; raises BadInput when its cluster or its size is not there any more."""
    values, cluster = draft.values, cluster_of(draft)
    if cluster is None:
        raise BadInput(
            "This cluster takes no teams now. Choose another.",
            code="cluster_off",
            field="cluster",
        )
    form = StartForm(dict(values), cluster=cluster)
    if not form.is_valid():
        raise BadInput(
            "The size you chose is not offered any more. Choose again.",
            code="not_offered",
            field="flavor",
        )
    return Enrolment(
        name=values["name"],
        entra_group=values["entra_group"],
        cost_centre=values["cost_centre"],
        project=values["project"],
        environment=values["environment"],
        cluster=cluster,
        start=start_of(form.cleaned_data, now=now),
    )


def open_clusters() -> list[Cluster]:
    """The clusters that take teams, with their flavors; those that answer first."""
    rows = Cluster.objects.open_to(None).prefetch_related("flavors")
    return sorted(rows, key=lambda cluster: cluster.is_away)


def cluster_of(draft: Draft) -> Cluster | None:
    """The cluster that was chosen, if it still takes teams."""
    return (
        Cluster.objects.open_to(None)
        .filter(name=draft.values.get("cluster", ""))
        .first()
    )


def step_of(field: str) -> str:
    """The step on which a field is asked for."""
    if field in ("name", "entra_group", "cost_centre"):
        return "who"
    return "where" if field in ("project", "environment", "cluster") else "start"
