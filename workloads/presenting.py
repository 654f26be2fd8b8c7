"""What the page of a team's work shows of each piece."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from provisioning.models import Tenancy
from ui.parts import Link
from workloads.explanations import Action, Explanation, Outlook
from workloads.gpu_use.busy import Busy
from workloads.listing import State, Work
from workloads.own_work import own_link
from workloads.reasons.words import gpu_words
from workloads.runs.pages.page import IDLE_WORD
from workloads.runs.pages.steps import link_of
from workloads.stopping import KINDS

TONES = {
    State.RUNNING: ("good", "Running"),
    State.STARTING: ("moving", "Starting"),
    State.WAITING: ("waiting", "Waiting"),
    State.STOPPED: ("past", "Stopped"),
    State.FAILED: ("bad", "Failed"),
    State.FINISHED: ("past", "Finished"),
}
# What waits for somebody's hand, or for nothing that could come, does not look as if it only had to wait.
WAITING = {
    Outlook.CHANGE: ("ending", "Needs a change"),
    Outlook.ESCALATE: ("waiting", "Waits for others"),
    Outlook.NEVER: ("bad", "Cannot start"),
}


def state_words(state: State, why: Explanation) -> tuple[str, str]:
    """The hue and the word of a state; of what waits, who has to do something about it."""
    if state != State.WAITING:
        return TONES[state]
    return WAITING.get(why.outlook, TONES[state])


class WorkLine(TypedDict):
    """A piece of work in a list: where it is, how it stands and why, and what can be done about it."""

    name: str
    href: str
    kind: str
    where: str
    tone: str
    word: str
    gpus: str
    since: datetime | None
    what: str
    more: str
    busy: Busy | None
    step: Link | None
    target: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Lines:
    """What the lines of a page are made with, besides the work itself."""

    titles: Mapping[str, str]
    tenancies: Sequence[Tenancy]
    flavors: Collection[str]
    may_stop: bool
    may_ask: bool
    now: datetime
    busy: Callable[[Work], Busy | None]

    def line(self, one: Work) -> WorkLine:
        """A piece of work as its line shows it."""
        tone, word = state_words(one.state, one.why)
        busy = self.busy(one)
        if busy is not None and busy.is_wasted(self.now):
            tone, word = "ending", IDLE_WORD
        why = one.why
        return {
            "name": one.title or one.key.name,
            "href": own_link(run=one.run, notebook=one.notebook),
            "kind": str(one.key) if one.title else one.key.kind,
            "where": self.titles[one.cluster],
            "tone": tone,
            "word": word,
            "gpus": gpu_words(one.gpus, one.slices) or "none",
            "since": why.since,
            "what": why.what,
            "more": _more(one),
            # Where nobody measures, each line would say the same.
            "busy": busy if busy is not None and busy.share is not None else None,
            "step": self._step(one) if not one.is_over else None,
            "target": self._target(one),
            "detail": why.detail,
        }

    def _target(self, one: Work) -> str:
        """What its button sends to stop it; empty where it has none."""
        if not self.may_stop or one.is_over or one.key.kind not in KINDS:
            return ""
        tenancy = self._tenancy(one)
        # A run is ended as one. Else nothing is deleted on a cluster that follows Git.
        if not one.run and tenancy is not None and not tenancy.cluster.is_written_to:
            return ""
        return f"{one.cluster}/{one.key.namespace}/{one.key.kind}/{one.key.name}/{one.key.uid}"

    def _tenancy(self, one: Work) -> Tenancy | None:
        here = (one.cluster, one.key.namespace)
        found = (
            each
            for each in self.tenancies
            if (each.cluster.name, each.namespace) == here
        )
        return next(found, None)

    def _step(self, one: Work) -> Link | None:
        """The link of what can be done about it: a log is read by all who may stop it, the rest is the team's."""
        is_log = one.why.step is not None and one.why.step.action is Action.SHOW_LOGS
        if not (self.may_stop if is_log else self.may_ask):
            return None
        tenancy = self._tenancy(one)
        if tenancy is None:
            return None
        return link_of(
            one.why,
            tenancy,
            run=one.run,
            tenancies=self.tenancies,
            flavors=self.flavors,
            now=self.now,
        )


def _more(one: Work) -> str:
    """What follows on its sentence: advice for what has failed, place, time and advice of what does not run."""
    if one.state == State.FAILED:
        return one.why.do
    if one.state in (State.FINISHED, State.RUNNING):
        return ""
    return f"{one.why.line} {one.why.when} {one.why.do}"
