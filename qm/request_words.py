"""How requests, their answers and what is held under them are written for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from qm import words

Named = Mapping[str, Any]
Fact = tuple[str, object]
VERDICTS: Mapping[str, str] = {
    "approve": "approved",
    "reject": "rejected",
    "ask": "asked",
    "answer": "answered",
}
OVER: Mapping[str, str] = {"withdrawn": "It was withdrawn.", "lapsed": "It lapsed."}
# By the unit of what goes back: what the number beside it is, and of what.
HELD_BESIDE: Mapping[str, tuple[str, str]] = {
    "gpu": ("quota", "GPU"),
    "machine": ("reserved", "machine"),
}
# Neither granted and made, nor given up.
UNFINISHED = ("waiting", "approved", "setting_up")
VOTES = ("approve", "reject")
SEVERAL = "  "


def stage(request: Named) -> str:
    """What has become of a request, as the portal's pages call it: GPUs are held, anything else is in place."""
    if request["stage"] == "active":
        return "held" if request["flavor"] else "in place"
    return str(request["stage"]).replace("_", " ")


def what(request: Named) -> str:
    """What is asked for, with how much of it was granted or votes so far leave of it, where that is less."""
    granted, left = request["approved_count"], request["count_now"]
    if granted is not None and granted != request["count"]:
        return f"{request['name']}, {granted} granted"
    if granted is None and left < request["count"]:
        return f"{request['name']}, {left} approved so far"
    return str(request["name"])


def until(request: Named) -> str:
    """Until when it was granted, or what the votes so far leave while nothing is granted, in local time."""
    return words.moment(request["approved_until"] or request["until_now"])


def where(request: Named) -> str:
    """The cluster with its kind of GPU, as --flavor takes it; the place alone of what takes none."""
    of_gpus = f"{request['cluster']}/{request['flavor']}"
    return of_gpus if request["flavor"] else str(request["place"])


def usd(amount: object) -> str:
    """An amount of money to the cent, with its unit."""
    return f"{Decimal(str(amount)):.2f} USD"


def answer(plan: Named) -> list[Fact]:
    """What would be said to an ask: whether that is automatic, what decides it, and what it costs."""
    found = plan["answer"]
    return [
        ("answer", found["sentence"]),
        ("in its way", plan["over_budget"]),
        ("who decides", _route(plan)),
        *_reasons(plan),
        *_lines("automatic", (one["sentence"] for one in plan["remedies"])),
        ("all free from", words.moment(plan["fits_from"])),
        (
            "cost",
            f"{usd(found['usd'])} in all, {usd(found['usd_per_day'])} a day: {plan['formula']}",
        ),
        *_lines("budget", map(_month, plan["budget"])),
        (
            "in its namespace",
            f"{words.counted(plan['quota']['before'], 'GPU')} without it, {plan['quota']['after']} with it",
        ),
        *_lines("then", plan["after_approval"] if is_possible(plan) else ()),
    ]


def is_possible(plan: Named) -> bool:
    """Whether the policy or people may approve it."""
    return bool(plan["answer"]["outcome"] != "impossible")


def vacancies(plan: Named) -> Iterator[str]:
    """Sentences about seats of the route in which nobody would decide, as far as is known."""
    if empty := " and ".join(plan["empty_seats"]):
        yield f"Nobody is known as {empty}: nobody can decide there until a platform lead names somebody."
    if unread := " and ".join(plan["unread_seats"]):
        yield f"The portal has not read yet who {unread} are."


def _reasons(plan: Named) -> list[Fact]:
    """The rules by which it is not automatic, or not possible; that all of them hold, where it is automatic."""
    broken = [
        f"{one['text']}: {one['limit']}"
        for one in plan["answer"]["rules"]
        if not one["holds"] and (one["blocks"] or is_possible(plan))
    ]
    size = plan["answer"]["route_size"] or {}
    if size.get("words"):
        broken.append(size["words"])
    return _lines(
        "because", broken or [f"Every rule of policy {plan['policy']} holds."]
    )


def _route(plan: Named) -> str:
    steps = []
    for one in plan["answer"]["steps"]:
        several = f"{one['quorum']} of the " if one["quorum"] > 1 else ""
        steps.append(f"{several}{one['words']} within {one['target_hours']} h")
    # What nobody may approve has a route all the same, which leads nowhere.
    if not steps or not is_possible(plan):
        return ""
    usual = plan["usual_seconds"]
    usually = f"; it usually takes {words.duration(usual)}" if usual else ""
    return f"{', then '.join(steps)}{usually}"


def _month(month: Named) -> str:
    hours = month["gpu_hours_left_after"]
    of_hours = (
        f", {hours} of {month['gpu_hours_limit']} GPU-hours"
        if hours is not None
        else ""
    )
    return f"{usd(month['left_after'])} of {usd(month['limit_usd'])}{of_hours} left in {month['month']} with it"


def _lines(name: str, texts: Iterable[str]) -> list[Fact]:
    """Several values of one name, which stands before the first of them."""
    return [
        (name if not number else SEVERAL, text) for number, text in enumerate(texts)
    ]


def request(found: Named) -> list[Fact]:
    """Everything about a request but what happened to it and what comes."""
    return [
        ("request", found["id"]),
        ("what", what(found)),
        ("where", where(found)),
        ("team", f"{found['team']['name']} ({found['team']['slug']})"),
        ("namespace", (found["tenancy"] or {}).get("namespace")),
        ("by", found["requester"]["name"]),
        ("state", stage(found)),
        ("whose turn", turn(found)),
        *_lines("question", questions(found)),
        ("not granted", found["why_not_granted"]),
        *_lines(
            "in its way", filter(None, (found["why_closed"], found["over_budget"]))
        ),
        ("withdrawn", found["withdrawn_because"]),
        ("reason", found["reason"]),
        ("for", found["purpose"]),
        ("from", words.moment(found["starts_at"])),
        *_until(found),
        ("cost", _cost(found)),
        ("renews", found["renews"]),
        ("decided by", deciders(found)),
        *_lines("still runs", map(_still_running, found["still_running"])),
    ]


def _until(found: Named) -> list[Fact]:
    """When it ends, or ended; what it was granted until stands beside that where it came earlier."""
    if found["stage"] == "ended" and (ended := found["ended"]):
        return [
            ("ended", words.moment(ended[-1]["ended_at"])),
            ("granted until", until(found)),
        ]
    held = found["allocation"]
    return [("until", words.moment(held["until"]) if held else until(found))]


def giving_back(effect: Named, held: Named) -> list[Fact]:
    """What giving GPUs or machines back changes, and what becomes of work that runs on them."""
    notebook, renewal, stays = effect["notebook"], effect["renewal"], effect["stays"]
    until = words.moment(effect["until"])
    return [
        ("goes back", f"{effect['count']} of {held['what']}"),
        ("stays", f"{stays} until {until}" if stays else "nothing"),
        _held_beside(effect),
        (
            "cost",
            f"{usd(effect['usd_per_day'])} a day now, {usd(effect['usd_per_day_after'])} then",
        ),
        ("freed", f"{usd(effect['freed_usd'])} in the budget"),
        *_lines(
            "renewal", [_of_renewal(renewal, stays=bool(stays))] if renewal else []
        ),
        *_lines(
            "notebook",
            [
                f"{notebook['title']} of {notebook['owner']} is stopped at once; its volumes stay."
            ]
            if notebook
            else [],
        ),
        ("work", effect["in_use"]),
    ]


def _held_beside(effect: Named) -> Fact:
    name, unit = HELD_BESIDE[effect["unit"]]
    return (
        name,
        f"{words.counted(effect['held'], unit)} now, {effect['held_after']} then",
    )


def _of_renewal(number: int, *, stays: bool) -> str:
    if stays:
        return f"Request {number}, which asks to keep them longer, asks for no more than what stays."
    return f"Request {number}, which asks to keep them longer, is withdrawn with this."


def ending(held: Named) -> list[Fact]:
    """What ends as a whole: a booking, or what takes no GPUs."""
    return [
        ("ends", held["what"]),
        ("where", held["where"]),
        ("until", words.moment(held["until"])),
        ("cost", f"{usd(held['usd_per_day'])} a day"),
    ]


def turn(found: Named) -> str:
    """Who must act for it to go on, in the portal's words; empty where nobody must."""
    entry = _now(found)
    return _sentence(entry) if entry else ""


def full_stop(said: str) -> str:
    """The same as a whole sentence; nothing stays nothing."""
    return said if not said or said.endswith(".") else f"{said}."


def turn_in_short(found: Named) -> str:
    """The same for a list: who decides or answers, or how it is made."""
    entry = _now(found)
    if entry is None:
        return ""
    return str(
        entry["what"] if found["stage"] == "waiting" else entry["why"] or entry["what"]
    )


def _now(found: Named) -> Named | None:
    if found["stage"] not in UNFINISHED:
        return None
    return next((one for one in found["next"] if one["at"] is None), None)


def _sentence(entry: Named) -> str:
    return f"{entry['what']}. {entry['why']}" if entry["why"] else str(entry["what"])


def questions(found: Named) -> Iterator[str]:
    """What the requester is asked, while it is theirs to answer."""
    if found["state"] == "waiting" and found["turn"] == "requester":
        asked = [one for one in found["decisions"] if one["verdict"] == "ask"]
        yield from (f"{_by(one)}: {one['reason']}" for one in asked[-1:])


def _cost(found: Named) -> str:
    """What it costs in all; of what people left less of, beside that as asked."""
    left, asked = found["usd_now"], found["usd"]
    if found["stage"] == "ended" and (ended := found["ended"]):
        was = sum(Decimal(str(one["usd_in_all"])) for one in ended)
        return f"{usd(was)} in all; {usd(asked)} as asked: {found['formula']}"
    if left == asked:
        return f"{usd(asked)} in all: {found['formula']}"
    return f"{usd(left)} in all; {usd(asked)} as asked: {found['formula']}"


def deciders(found: Named) -> str:
    """The steps of its route in order, each with how far it is; the policy, where nobody was needed."""
    steps = [
        one
        for one in sorted(found["steps"], key=lambda one: one["position"])
        if one["version"] == found["content_version"] and not one["dropped_at"]
    ]
    if not steps:
        return (
            "the policy" if any(one["by"] is None for one in found["decisions"]) else ""
        )
    return ", then ".join(map(_step, steps))


def _step(one: Named) -> str:
    several = f"{one['quorum']} of the " if one["quorum"] > 1 else ""
    if one["done_at"]:
        how_far = f"done {words.moment(one['done_at'])}"
    elif one["opened_at"] is None:
        how_far = "not yet"
    elif one["paused_at"]:
        how_far = f"stands still since {words.moment(one['paused_at'])}"
    else:
        how_far = (
            f"should decide by {words.moment(one['due_at'])}"
            if one["due_at"]
            else "open"
        )
    stand_in = f", {one['stand_in']['name']} in their place" if one["stand_in"] else ""
    return f"{several}{one['label']} ({how_far}{stand_in})"


def _still_running(work: Named) -> str:
    stops = (
        f"stopped {words.moment(work['stop_at'])}" if work["stop_at"] else "may finish"
    )
    return f"{work['job']} on {work['gpus']} × {work['flavor']}: {stops}"


def events(found: Named, comments: Sequence[Named]) -> list[tuple[str, str]]:
    """What happened to it, oldest first: moments in local time, and sentences."""
    happened = [*_asked(found), *map(_decided(found), found["decisions"])]
    happened += [
        (one["at"], f"{one['by']['name']} wrote: {one['text']}") for one in comments
    ]
    happened += [(one["at"], one["words"]) for one in found["reroutings"]]
    happened += [pair for one in found["steps"] for pair in _clock(one)]
    happened += [pair for one in found["tasks"] for pair in _carried_out(one)]
    happened += _held(found)
    if over := OVER.get(found["state"]):
        happened.append((found["decided_at"], over))
    in_order = sorted((one for one in happened if one[0]), key=lambda one: str(one[0]))
    return [(words.moment(at), text) for at, text in in_order]


def _asked(found: Named) -> Iterator[tuple[str | None, str]]:
    """The ask with its answer, and each change with the answer to that."""
    first, *others = found["evaluations"] or [None]
    said = f" {first['answer']['sentence']}" if first else ""
    versions = {one["content_version"]: one for one in found["versions"]}
    name = versions[1]["name"] if versions else found["name"]
    yield found["created_at"], f"{found['requester']['name']} asked for {name}.{said}"
    seen = 1
    for one in others:
        version = one["content_version"]
        judged = f"Policy {one['policy']} judged it again."
        if version > seen and version in versions:
            judged = _changed(versions[version])
        seen = version
        yield one["at"], f"{judged} {one['answer']['sentence']}"


def _changed(version: Named) -> str:
    return f"{version['by']['name']} changed it. {'; '.join(version['changed'])}."


def _by(decision: Named) -> str:
    name = decision["by"]["name"] if decision["by"] else "The policy"
    other = f" for {decision['stands_in_for']}" if decision["stands_in_for"] else ""
    return f"{name}{other}"


def _decided(found: Named) -> Any:
    def sentence(one: Named) -> tuple[str, str]:
        is_void = (
            one["verdict"] in VOTES
            and one["content_version"] < found["content_version"]
        )
        part = ""
        if one["verdict"] == "approve" and not is_void:
            if one["count"] != found["count"]:
                part += f" {one['count']} of {found['count']}"
            if one["until"] and one["until"] != found["until"]:
                part += f" until {words.moment(one['until'])}"
        void = " Void: it was changed since." if is_void else ""
        reason = f": {one['reason']}" if one["reason"] else "."
        return one["at"], f"{_by(one)} {VERDICTS[one['verdict']]}{part}{reason}{void}"

    return sentence


def _clock(step: Named) -> Iterator[tuple[str | None, str]]:
    yield step["reminded_at"], f"The portal reminded the {step['label']}."
    yield step["escalated_at"], f"The {step['label']} had not decided in time."


def _carried_out(task: Named) -> Iterator[tuple[str | None, str]]:
    who = task["assignee"]["name"] if task["assignee"] else "Somebody"
    yield task["taken_at"], f"{who} took it on: {task['title']}."
    note = f": {task['note']}" if task["note"] else "."
    verb = "could not do it" if task["state"] == "failed" else "did it"
    yield task["done_at"], f"{who} {verb}{note}"


def _held(found: Named) -> Iterator[tuple[str | None, str]]:
    """That it began and was there, and how it came to its end, in parts or as a whole."""
    allocation, ended = found["allocation"], found["ended"]
    parts = [*ended, allocation] if allocation else ended
    # What ended first may have been a part.
    amount = "" if ended or not parts else f": {parts[0]['what']}"
    yield _first(parts, "begun_at"), f"It began{amount}."
    yield _first(parts, "charged_from"), "It is there, and costs from now on."
    for one in ended:
        yield one["ended_at"], _how_it_ended(one)


def _first(parts: Sequence[Named], name: str) -> str | None:
    """The first moment of this name: a part that went back while it was made was never there, and others were."""
    return next((one[name] for one in parts if one[name]), None)


def _how_it_ended(one: Named) -> str:
    if one["taken_back_because"]:
        return f"{one['ended_by']} took {one['what']} back for the platform: {one['taken_back_because']}"
    if one["end_reason"] == "expired":
        return f"The end date of {one['what']} came."
    if one["end_reason"] == "renewed":
        return f"{one['what']} went on under a renewal."
    if one["end_reason"] == "failed":
        return f"{one['what']} could not be made."
    if one["begun_at"] is None:
        return f"{one['ended_by']} cancelled the booking."
    return f"{one['ended_by']} gave {one['what']} back."


def coming(found: Named) -> list[tuple[str, str]]:
    """What is and what comes, with its moments in local time; what has no date yet comes later."""
    return [
        (words.moment(one["at"]) or ("later" if number else "now"), _sentence(one))
        for number, one in enumerate(found["next"])
    ]


def progress(found: Named) -> str:
    """Where a request is, in one line."""
    parts = (
        f"Request {found['id']}: {full_stop(turn(found) or stage(found))}",
        *questions(found),
    )
    return words.plain(" ".join(parts))


def used(allocation: Named, utilisation: Sequence[Named]) -> str:
    """How much of a kind of GPU the team's work takes in the namespace of an allocation; empty where nobody knows.

    A namespace's work takes GPUs of a kind, and not of one allocation of it.
    """
    for one in utilisation:
        if allocation["id"] in one["allocations"]:
            now = (
                f"{one['used_now']} of {one['gpus']} now"
                if one["used_now"] is not None
                else ""
            )
            lately = (
                f"{float(one['used_percent']):.0f} % in 7 days"
                if one["used_percent"] is not None
                else ""
            )
            return ", ".join(filter(None, (now, lately)))
    return ""


def request_number(allocation: Named) -> str:
    """The number of the request that an allocation was granted for."""
    return str(allocation["reference"]).rpartition("-")[2]
