"""Answers with their rules, what changes, what was and comes, what is missing."""

from collections.abc import Sequence

from django import template

from ui.parts import BeforeAfter, Checklist, Entry, Link, Verdict, Wait

register = template.Library()
Context = dict[str, object]

VERDICTS = {
    "good": "check",
    "bad": "x",
    "waiting": "triangle-alert",
    "moving": "info",
    "past": "info",
    "ending": "sunset",
}


@register.inclusion_tag("parts/verdict.html")
def verdict_strip(verdict: Verdict) -> Context:
    """The answer in one sentence and the rule that decides it; the others, grouped, in a fold.

    A rule that forbids decides before one that only asks people.
    """
    rules = verdict["rules"]
    failing = sorted(
        (r for r in rules if r.get("deciding")), key=lambda rule: rule["mark"] != "no"
    )
    holding = [rule for rule in rules if not rule.get("deciding")]
    first, others = failing[:1], failing[1:]
    counts = (
        [f"{len(others)} more rule{'s are' if len(others) > 1 else ' is'} not met"]
        if others
        else []
    )
    # "17 rules are met" by itself, "8 are met" behind those that are not.
    noun = "" if others else " rule" if len(holding) == 1 else " rules"
    met = "is met" if len(holding) == 1 else "are met"
    counts += [f"{len(holding)}{noun} {met}"] if holding else []
    return {
        "verdict": verdict,
        "first": first,
        "others": others,
        "holding": holding,
        "fold_words": " · ".join(counts),
        "icon_name": verdict_icon(verdict["tone"]),
    }


@register.inclusion_tag("parts/before_after.html")
def before_after(rows: Sequence[BeforeAfter], all_rows: bool = False) -> Context:
    """What changes; rows that stay the same are left out unless `all_rows`."""
    return {"rows": [row for row in rows if all_rows or row["before"] != row["after"]]}


@register.inclusion_tag("parts/timeline.html")
def timeline(
    entries: Sequence[Entry], label: str = "What happened and what comes"
) -> Context:
    """Past, now and future in this order."""
    return {"entries": entries, "label": label}


@register.inclusion_tag("parts/checklist.html")
def object_checklist(checklist: Checklist) -> Context:
    """Created objects of one cluster with state and age; folded when all are ready."""
    items = checklist["items"]
    failed = sum(item["tone"] == "bad" for item in items)
    done = checklist.get("done", "ready")
    objects = [item for item in items if item.get("is_object", True)]
    ready = sum(item["tone"] == "good" for item in objects)
    return {
        "checklist": checklist,
        "all_ready": all(item["tone"] == "good" for item in items),
        "failed": failed,
        "how_many": _how_many(len(objects), ready=ready, failed=failed, done=done),
    }


def _how_many(objects: int, *, ready: int, failed: int, done: str) -> str:
    if ready < objects:
        return f"{ready} of {objects} {done}" + (f", {failed} failed" if failed else "")
    return f"1 object {done}" if objects == 1 else f"{objects} objects {done}"


@register.inclusion_tag("parts/waiting.html")
def waiting_line(waiting: Wait, *, quiet: bool = False) -> Context:
    """Why it waits; `quiet` where the list around it says that there is nothing to do."""
    tone = {"escalate": "bad", "never": "bad", "change": "waiting"}.get(
        waiting.get("kind", "wait"), "waiting"
    )
    return {"waiting": waiting, "tone": tone, "quiet": quiet}


@register.inclusion_tag("parts/empty.html")
def empty(
    title: str, text: str = "", action: Link | None = None, example: str = ""
) -> Context:
    """What this is for, the first action, one example."""
    return {"title": title, "text": text, "action": action, "example": example}


@register.inclusion_tag("parts/problem.html")
def problem(
    what: str,
    changed: str = "Nothing was changed.",
    todo: str = "",
    request_id: str = "",
    tone: str = "bad",
) -> Context:
    """What happened, whether anything changed, what to do, the request id."""
    return {
        "what": what,
        "changed": changed,
        "todo": todo,
        "request_id": request_id,
        "tone": tone,
    }


@register.inclusion_tag("parts/message.html")
def message(text: str, tone: str = "past") -> Context:
    """One line in a tone, as flash messages show it."""
    return {"text": text, "tone": tone, "icon_name": verdict_icon(tone)}


@register.filter
def verdict_icon(tone: str) -> str:
    """The icon of an answer, as its strip has it."""
    return VERDICTS.get(tone, "info")


@register.filter
def message_tone(level_tag: str) -> str:
    """Tone of a Django message: success is good, warning is waiting, error is bad."""
    return {"success": "good", "warning": "waiting", "error": "bad"}.get(
        level_tag, "moving"
    )
