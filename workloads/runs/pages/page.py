"""What the pages about runs show: the answer beside the form, a run's figures and story, and its list."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.db.models import F
from django.urls import reverse

from accounts.models import User
from approvals.request_form.answer_panel import JUST_NOW
from fleet.models import Flavor
from provisioning.desired.first_job import as_yaml
from provisioning.desired.variables import SecretVariable, names_in_words
from provisioning.models import Tenancy
from ui.amounts import ago, duration, gpus, moment, span, usd
from ui.parts import (
    Badge,
    BeforeAfter,
    Cell,
    Entry,
    Fact,
    Figure,
    Hint,
    Link,
    Row,
    Verdict,
    Wait,
    entry_of,
    in_time,
)
from workloads.explanations import Explanation
from workloads.failures.causes import Code
from workloads.gpu_use.overall import Overall
from workloads.runs.after import skipped_with
from workloads.runs.held_until import (
    too_few_for_plan,
    too_few_words,
)
from workloads.runs.models import Run
from workloads.runs.pages.steps import ask_for, wait_of
from workloads.runs.planning.maintained import maintenance_stop_of
from workloads.runs.planning.plan import Plan, topology_of
from workloads.runs.planning.resuming import ChangedPlan
from workloads.runs.planning.spot import Spot, spot_of
from workloads.runs.planning.start_verdict import start_verdict_of_plan
from workloads.runs.planning.words import level_words, paid_words
from workloads.runs.shown import NOT_KEPT, AttemptSeen, RunSeen
from workloads.runs.states import State
from workloads.template_desk.offered import template_titles, template_words

TONES = {
    State.BLOCKED: "waiting",
    State.SUBMITTED: "moving",
    State.WAITING: "waiting",
    State.STARTING: "moving",
    State.RUNNING: "good",
    State.FINISHED: "past",
    State.FAILED: "bad",
    State.STOPPED: "past",
    State.REFUSED: "bad",
    State.GONE: "past",
    State.SKIPPED: "past",
}
IDLE_WORD = "Running, GPUs idle"
# Of a run that is interrupted again and again the page tells of the last; the API of all.
MOST_ATTEMPTS = 20
MOST_NEXT_RUNS = 20
ANEW = "The limit begins anew each time that it is preempted."
SENT_BACK = "Sent back to the line by its queue"


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Which kind of GPU has the memory that is needed, and where to ask for it."""

    words: str
    ask: Link | None


@dataclass(frozen=True, kw_only=True)
class RunAnswer:
    """The answer beside the form of a run."""

    verdict: Verdict
    figures: Sequence[Figure]
    paid: str
    already: Hint | None
    spot: Spot | None
    ask_for_spot: Link | None
    memory: Memory | None
    differences: Sequence[BeforeAfter] | None
    volumes: str
    # That the GPUs which carry it end before it may.
    ends: str
    yaml: str
    name: str
    is_possible: bool


@dataclass(frozen=True, kw_only=True)
class RunLine:
    """A run in a short list."""

    title: str
    href: str
    tone: str
    word: str
    team: str
    sub: str


@dataclass(frozen=True, kw_only=True)
class NextRuns:
    """The runs that begin after one, and in a sentence those that are skipped if it is stopped; empty without any."""

    then: Sequence[Link]
    skipped: str


@dataclass(frozen=True, kw_only=True)
class BusyShown:
    """How busy a run's GPUs are, and since when they are idle."""

    value: str
    words: str
    since: datetime | None
    is_wasted: bool


def yaml_of(manifests: Sequence[Any]) -> str:
    """The objects as people save and send them with kubectl."""
    return "---\n".join(as_yaml(one) for one in manifests)


def answer_of(
    plan: Plan,
    tenancy: Tenancy,
    flavor: str,
    *,
    title: str,
    by: User,
    now: datetime,
) -> RunAnswer:
    """The answer beside the form: whether it can be sent, what it costs, and whether it would wait."""
    figures: list[Figure] = [
        {
            "label": "An hour",
            "value": usd(plan.usd_per_hour),
            "note": _gpus_words(plan),
        },
        {
            "label": "Until its time limit",
            "value": "–" if plan.usd_at_limit is None else usd(plan.usd_at_limit),
            "note": "It runs until you stop it."
            if plan.seconds is None
            else f"{length_of(plan.seconds)} at most. {ANEW}",
        },
    ]
    spot = spot_of(plan)
    verdict = (
        _refusal(plan, tenancy, flavor, now)
        if plan.problems
        else start_verdict_of_plan(plan, tenancy, flavor, now)
    )
    return RunAnswer(
        verdict=verdict,
        figures=figures if not plan.problems or plan.gpus else [],
        paid=paid_words(plan),
        already=_already(title, tenancy, by, now),
        spot=spot,
        ask_for_spot=_spot_link(plan, tenancy, now)
        if spot is not None and spot.is_cheaper
        else None,
        memory=_memory_of(plan, tenancy, now),
        differences=[
            {"label": one.label, "before": one.before, "after": one.after}
            for one in plan.differences
        ]
        if isinstance(plan, ChangedPlan)
        else None,
        volumes=_volumes_words(plan, tenancy),
        ends=too_few_words(
            too_few_for_plan(plan, tenancy, flavor, now=now), tenancy, now=now
        ),
        yaml=yaml_of(plan.manifests),
        name=plan.name,
        is_possible=not plan.problems,
    )


def _already(title: str, tenancy: Tenancy, by: User, now: datetime) -> Hint | None:
    """That the person has just started a run of this name: who went back to the form may not know."""
    same = Run.objects.filter(
        requester=by,
        tenancy=tenancy,
        title=title,
        ended_at=None,
        created_at__gte=now - JUST_NOW,
    )
    needed = ("state", "message", "stop_asked_at", "created_at")
    last = same.order_by("-pk").only(*needed).first()
    if last is None:
        return None
    when, state = ago(last.created_at, now), last.word.lower()
    return {
        "text": f"You started one of this name {when}: {state}. This starts it once more.",
        "href": reverse("run", args=[last.pk]),
    }


def _volumes_words(plan: Plan, tenancy: Tenancy) -> str:
    """That volumes are not the portal's, and what becomes of the run where they are not there."""
    if not plan.unknown_volumes:
        return ""
    names = " and ".join(plan.unknown_volumes)
    return (
        f"Among the volumes that the portal keeps in {tenancy.namespace} is no {names}. Unless your team has made a "
        "claim of that name there, the run never begins."
    )


def run_tone(run: Run) -> str:
    """The hue of a run's state."""
    return "ending" if run.is_being_stopped else TONES[State(run.state)]


def sentence_of(seen: RunSeen) -> str:
    """What is with a run, in one sentence or two."""
    run = seen.run
    if run.is_over:
        why = "" if run.says_how_it_ended else run.message
        return " ".join(filter(None, (run.end_words, why, run.advice)))
    if run.is_being_stopped:
        return "It has its grace to write a last checkpoint; its GPUs are free as soon as its pods are gone."
    if seen.why is not None:
        return seen.why.what
    if run.sent_at is None:
        return "It is being sent to the cluster."
    return "The portal is about to see it on the cluster."


def next_runs(run: Run) -> NextRuns:
    """The runs that begin after one, the first ones; no query without (`with_next`)."""
    then = list[Run]()
    if getattr(run, "has_next", True):
        rows = Run.objects.filter(after=run).only("title", "state")
        # Of many those that wait are shown, and not what is over.
        live_first = rows.order_by(F("ended_at").asc(nulls_first=True), "pk")
        then = sorted(live_first[:MOST_NEXT_RUNS], key=lambda one: one.pk)
    is_waited_for = any(one.state == State.BLOCKED for one in then)
    return NextRuns(
        then=[_link_to(one) for one in then],
        skipped=_skipped_words(skipped_with(run)) if is_waited_for else "",
    )


def _skipped_words(runs: Sequence[Run]) -> str:
    names = [one.title for one in runs[:MOST_NEXT_RUNS]]
    if len(runs) > MOST_NEXT_RUNS:
        names.append(f"and {len(runs) - MOST_NEXT_RUNS} more")
    return f"What waits for it is skipped: {', '.join(names)}."


def _link_to(run: Run) -> Link:
    return {"label": run.title, "href": reverse("run", args=[run.pk])}


def waiting_of(why: Explanation | None, run: Run, now: datetime) -> Wait | None:
    """The lines about a wait, with the button of its next step where there is one."""
    if why is None or run.is_over or why.code == "running":
        return None
    return wait_of(why, run.tenancy, run=run.pk, flavor=run.flavor, now=now)


def keeping_of(seen: RunSeen, now: datetime) -> Link | None:
    """Where its GPUs are asked for again while a run has GPUs that are no longer held; None for any other."""
    run = seen.run
    if seen.stop_at is None or run.flavor is None:
        return None
    href = ask_for(run.flavor.key, run.gpus, run.tenancy, now)
    return {"label": f"Ask for {gpus(run.gpus, run.flavor.kind)}", "href": href}


def figures_of(seen: RunSeen, use: Overall, now: datetime) -> list[Figure]:
    """A run in numbers, with how well it used its GPUs where that is known."""
    run = seen.run
    kind = run.flavor.kind if run.flavor and run.gpus else ""
    return [
        {
            "label": "GPUs",
            "value": str(run.gpus),
            "unit": kind,
            "note": use.words,
        },
        {
            "label": "Ran for",
            "value": span(run.ran(now)) if run.started_at else "–",
            "note": _limit_words(seen, now),
        },
        {"label": "Cost", "value": usd(run.cost(now)), "note": _cost_words(seen)},
    ]


def _limit_words(seen: RunSeen, now: datetime) -> str:
    """How long it may run, and until when while it runs."""
    run = seen.run
    if not run.limit_seconds:
        return "It has no time limit."
    each = " each time that it is let in" if seen.attempts else ""
    until = "" if run.limit_at is None else f", until {moment(run.limit_at, now)}"
    return f"of at most {length_of(run.limit_seconds)}{each}{until}"


def other_limit_words(run: Run) -> str:
    """That the cluster does not have the run's time limit yet, and why; empty where it has."""
    if run.is_over or run.sent_at is None or not run.has_other_limit:
        return ""
    if run.message:
        return f"The cluster has not taken the new time limit yet: {run.message}"
    return "The new time limit is on its way to the cluster."


def _cost_words(seen: RunSeen) -> str:
    """What an hour of it costs, and the most that all of it can while more may come."""
    rate, most = f"{usd(seen.run.usd_per_hour)} an hour", seen.run.usd_at_limit
    if most is None:
        return rate
    earlier = ", earlier attempts included" if seen.attempts else ""
    return f"{rate}, {usd(most)} at its time limit{earlier}"


def busy_of_page(run: Run, now: datetime) -> BusyShown | None:
    """How busy the GPUs are that a run holds, with what to do about idle ones; None while it holds none."""
    found = run.busy(now)
    if found is None:
        return None
    return BusyShown(
        value="–" if found.share is None else f"{found.share:.0%}",
        words=found.words,
        since=found.idle_since,
        is_wasted=found.is_wasted(now),
    )


def story_of(seen: RunSeen, *, may_read: bool, now: datetime) -> list[Entry]:
    """What happened to a run, and what comes."""
    run = seen.run
    found = [
        entry_of("past", "Submitted", run.created_at, who=run.requester.name),
    ]
    if run.sent_at is not None:
        found.append(entry_of("past", "Created on the cluster", run.sent_at))
    found += _attempts_of(seen, may_read=may_read)
    if run.limit_changed_at is not None and run.limit_changed_by is not None:
        title, who = (
            f"Time limit set to {length_of(run.limit_seconds)}",
            run.limit_changed_by,
        )
        found.append(entry_of("past", title, run.limit_changed_at, who=who.name))
    if run.stop_asked_at is not None and run.stop_asked_by is not None:
        found.append(
            entry_of(
                "past", "Asked to stop", run.stop_asked_at, who=run.stop_asked_by.name
            )
        )
    if run.is_over:
        return [
            *found,
            entry_of("past", run.word, run.ended_at, tone=run_tone(run)),
        ]
    if seen.sent_back_at is not None and not seen.attempts:
        found.append(entry_of("past", SENT_BACK, seen.sent_back_at))
    found.append(entry_of("now", run.word, None, tone=run_tone(run)))
    return [*found, *in_time(_coming(seen, now))]


def _coming(seen: RunSeen, now: datetime) -> Iterator[Entry]:
    """What is known to come to a run that goes on."""
    run = seen.run
    if seen.why is not None and seen.why.latest_at is not None:
        words = "Starts by then, unless other work goes first"
        yield entry_of("future", words, seen.why.latest_at)
    if (at := maintenance_stop_of(run, now)) is not None:
        words = "Stopped for the maintenance of its cluster, and started anew after it"
        yield entry_of("future", words, at)
    if seen.stop_at is not None:
        yield entry_of("future", "Stopped: its GPUs are no longer held", seen.stop_at)
    if run.limit_seconds and run.limit_at is not None:
        length = length_of(run.limit_seconds)
        words = f"Stopped at its time limit, {length} after it began"
        yield entry_of("future", words, run.limit_at)


def _attempts_of(seen: RunSeen, *, may_read: bool) -> Iterator[Entry]:
    """When it ran, why it was interrupted, and what is left of the log of that attempt."""
    run, title = seen.run, "Started to run"
    left_out = seen.attempts[:-MOST_ATTEMPTS]
    if run.started_at is not None and (left_out or not seen.attempts):
        yield entry_of("past", title, run.started_at)
    if left_out:
        words = f"Interrupted {len(left_out)} times"
        yield entry_of("past", words, left_out[-1].attempt.ended_at)
        title = "Started again"
    for one in seen.attempts[-MOST_ATTEMPTS:]:
        yield entry_of("past", title, one.attempt.started_at)
        if one.attempt.why:
            yield _interruption(one, seen, may_read=may_read)
        title = "Started again"


def _interruption(one: AttemptSeen, seen: RunSeen, *, may_read: bool) -> Entry:
    ended = one.attempt
    title = SENT_BACK if ended.is_sent_back else "Interrupted"
    entry: Entry = {**entry_of("past", title, ended.ended_at), "why": ended.why}
    if one.kept and may_read:
        pod = {"pod": one.kept[0].name, "attempt": ended.number}
        entry["evidence"] = {"label": "Its log", "href": f"?{urlencode(pod)}#logs"}
    # While its pods have their grace, their log may still be read.
    is_leaving = one is seen.attempts[-1] and bool(seen.pods) and not seen.run.is_over
    if ended.is_sent_back and not one.kept and not is_leaving:
        entry["why"] = f"{ended.why} {NOT_KEPT}"
    return entry


def facts_of(run: Run) -> list[Fact]:
    """What a run was submitted with."""
    asked, tenancy = run.submission, run.tenancy
    rows: list[Fact] = [
        {
            "label": "Template",
            "text": template_words(run.template, run.template_version),
        },
        {
            "label": "Team",
            "text": run.team.name,
            "href": reverse("team", args=[run.team.slug]),
        },
        {"label": "Cluster", "text": run.cluster.title},
        {"label": "Namespace", "copyable": tenancy.namespace},
        {"label": "On the cluster", "copyable": run.name},
        {"label": "Image", "text": str(asked["values"].get("image", "–"))},
    ]
    if nodes := asked["values"].get("nodes"):
        rows.append({"label": "Nodes", "text": str(nodes)})
    if close := level_words(topology_of(asked.get("topology"))):
        rows.append({"label": "Topology", "text": close})
    if asked["repository"]:
        rows.append(
            {
                "label": "Source",
                "text": f"{asked['repository']['url']} at {asked['repository']['revision']}",
            }
        )
    if asked["claims"]:
        rows.append(
            {
                "label": "Volumes",
                "text": ", ".join(
                    f"{one['name']} at {one['path']}" for one in asked["claims"]
                ),
            }
        )
    if secrets := asked.get("secrets"):
        names = names_in_words(map(SecretVariable.of, secrets))
        rows.append({"label": "Secrets", "text": names})
    if run.checkpoints:
        rows.append({"label": "Checkpoints", "copyable": run.checkpoints})
    if run.after_id is not None:
        href = reverse("run", args=[run.after_id])
        rows.append(
            {"label": "Begins after", "text": f"run {run.after_id}", "href": href}
        )
    if run.again_of_id is not None:
        rows.append(
            {
                "label": "Goes on from" if run.is_resumed else "The same as",
                "text": f"run {run.again_of_id}",
                "href": reverse("run", args=[run.again_of_id]),
            }
        )
    return rows


def length_of(seconds: int | None) -> str:
    """A time limit in words, to the minute."""
    return duration(timedelta(seconds=seconds or 0))


def rows_of(runs: Sequence[Run], now: datetime) -> list[Row]:
    """Runs as the lines of a list, in one query for the titles of all."""
    titles = template_titles((one.template, one.template_version) for one in runs)
    return [_row(one, titles[one.template, one.template_version], now) for one in runs]


def _row(run: Run, template: str, now: datetime) -> Row:
    return {
        "cells": [
            {
                "text": run.title,
                "href": reverse("run", args=[run.pk]),
                # Of several runs of one title it tells which one this is.
                "sub": f"{run.name} · {run.requester.name} · {template}",
            },
            _state_cell(run, now),
            gpus(run.gpus, run.flavor.kind) if run.flavor else "none",
            run.created_at,
            span(run.ran(now)) if run.started_at else "–",
            {"money": run.cost(now)},
        ]
    }


def line_of(run: Run, now: datetime) -> RunLine:
    """A run in a short list beside other things; it says what somebody who comes back wants to know first."""
    return RunLine(
        title=run.title,
        href=reverse("run", args=[run.pk]),
        **_state_of(run, now),
        team=run.team.name,
        sub=", ".join(
            filter(None, (_held_words(run), _after_words(run), _time_words(run, now)))
        ),
    )


def _after_words(run: Run) -> str:
    """After which run it begins, while it waits for that; as "after Train"."""
    return f"after {run.waits_for.title}" if run.waits_for is not None else ""


def _held_words(run: Run) -> str:
    return gpus(run.gpus, run.flavor.kind) if run.flavor else ""


def _time_words(run: Run, now: datetime) -> str:
    """Since when it runs or waits, or when it ended, as "runs for 3 h, until 17:00 at the latest"."""
    if run.ended_at is not None:
        ran = f" after {span(run.ran(now))}" if run.started_at else ""
        return f"ended {ago(run.ended_at, now)}{ran}"
    if run.running_since is None:
        return f"submitted {ago(run.created_at, now)}"
    limit = run.limit_at
    until = "" if limit is None else f", until {moment(limit, now)} at the latest"
    return f"runs for {span(now - run.running_since)}{until}"


def _state_cell(run: Run, now: datetime) -> Cell:
    state = _state_of(run, now)
    label = Code(run.cause).label if run.cause else _after_words(run)
    return {"tone": state["tone"], "word": state["word"], "sub": label}


def _state_of(run: Run, now: datetime) -> Badge:
    if _is_wasted(run, now):
        return {"tone": "ending", "word": IDLE_WORD}
    return {"tone": run_tone(run), "word": run.word}


def _is_wasted(run: Run, now: datetime) -> bool:
    found = run.busy(now)
    return found is not None and found.is_wasted(now)


def _gpus_words(plan: Plan) -> str:
    if plan.pool is None or not plan.gpus:
        return "no GPU"
    pods = f" in {plan.pods} pods" if plan.pods > 1 else ""
    return f"{gpus(plan.gpus, plan.pool.title)}{pods}"


def _refusal(plan: Plan, tenancy: Tenancy, flavor: str, now: datetime) -> Verdict:
    first, *others = plan.problems
    lacks = next((one.lacks for one in plan.problems if one.lacks), 0)
    hint: Hint | None = None
    if lacks:
        row = Flavor.objects.select_related("cluster").get(
            cluster=tenancy.cluster_id, name=flavor
        )
        hint = {
            "text": "The form for them is filled in, and says at once whether they are yours.",
            "label": f"Ask for {lacks} more"
            if plan.pool
            else f"Ask for {gpus(lacks, row.kind)}",
            "href": ask_for(row.key, lacks, tenancy, now),
        }
    return {
        "tone": "bad",
        "sentence": first.text,
        "detail": "",
        "rules": [
            {"mark": "no", "text": one.text, "number": "", "deciding": True}
            for one in others
        ],
        "hint": hint,
    }


def _spot_link(plan: Plan, tenancy: Tenancy, now: datetime) -> Link | None:
    """The form for the same GPUs on spot, filled in; None for who has them, or where there are none."""
    pool = plan.pool
    if pool is None or pool.is_spot or not pool.other or plan.problems:
        return None
    if any(one.name == pool.other and one.gpus for one in tenancy.desired.flavors):
        return None
    row = Flavor.objects.select_related("cluster").get(
        cluster=tenancy.cluster_id, name=pool.other
    )
    return {
        "label": f"Ask for {plan.gpus} on spot",
        "href": ask_for(row.key, plan.gpus, tenancy, now),
    }


def _memory_of(plan: Plan, tenancy: Tenancy, now: datetime) -> Memory | None:
    """Which kind of GPU has the memory that the template needs, with a link to ask for one that is not held."""
    found = plan.recommended
    if found is None:
        return None
    ask: Link | None = None
    if not found.is_held:
        row = Flavor.objects.select_related("cluster").get(
            cluster=tenancy.cluster_id, name=found.flavor
        )
        count = max(plan.gpus, 1)
        ask = {
            "label": f"Ask for {gpus(count, row.kind)}",
            "href": ask_for(row.key, count, tenancy, now),
        }
    return Memory(words=found.words, ask=ask)
