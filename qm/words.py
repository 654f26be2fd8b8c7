"""How things are written for people: tables, local times, durations, and states in colour."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import click

COLOURS: Mapping[str, str] = {
    "running": "green",
    "finished": "green",
    "waiting": "yellow",
    "starting": "yellow",
    "held": "green",
    "in place": "green",
    "booked": "yellow",
    "setting up": "yellow",
    "ending soon": "yellow",
}
BAD = ("failed", "refused", "gone", "rejected")
LONGEST_REASON = 60
UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def printed(answer: object) -> None:
    """The portal's JSON on stdout, for machines."""
    click.echo(json.dumps(answer, indent=2, ensure_ascii=False))


def note(text: str) -> None:
    """A message for people, on stderr."""
    click.echo(text, err=True)


def plain(value: object) -> str:
    """A value in a cell: what is not printed would steer the terminal, so it is left out."""
    return "".join(
        sign for sign in str("" if value is None else value) if sign.isprintable()
    )


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows under their heads, aligned; cells that name a state are coloured."""
    lines = [[*map(plain, row)] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *lines)]
    # Nothing stands behind the last column, which is coloured as long as it is.
    widths[-1] = 0
    words = [
        [cell.ljust(width) for cell, width in zip(line, widths)]
        for line in [[*head], *lines]
    ]
    return "\n".join("  ".join(map(coloured, line)).rstrip() for line in words)


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Names and values below each other; those without a value are left out."""
    shown = [(name, plain(value)) for name, value in pairs if value not in (None, "")]
    width = max((len(name) for name, _ in shown), default=0)
    return "\n".join(f"{name.ljust(width)}  {coloured(value)}" for name, value in shown)


def coloured(cell: str) -> str:
    """A state in its colour; click takes it away again where no terminal shows it."""
    word = cell.strip().lower()
    colour = "red" if word in BAD else COLOURS.get(word)
    return (
        cell
        if colour is None or os.environ.get("NO_COLOR")
        else click.style(cell, fg=colour)
    )


def counted(number: int, unit: str) -> str:
    """ "1 GPU", "4 GPUs"."""
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def moment(text: str | None) -> str:
    """A time of the API in local time, with its zone."""
    if not text:
        return ""
    at = datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone()
    return f"{at:%Y-%m-%d %H:%M %Z}"


def attempts(run: Mapping[str, Any]) -> str:
    """Each time that a run ran, and why it was interrupted; empty for one that never was."""
    found = run["attempts"]
    if not any(one["why"] for one in found):
        return ""
    rows = [
        (
            one["number"],
            moment(one["started_at"]),
            moment(one["ended_at"]),
            one["why"],
        )
        for one in found
    ]
    return table(("attempt", "started", "ended", "why"), rows)


def since(run: Mapping[str, Any]) -> str:
    """Since when a run is where it is, in local time without year and zone, which a list has no room for."""
    found = run["why"] or {}
    times = (
        run["ended_at"],
        run["stop_asked_at"],
        found.get("since"),
        run["started_at"] if run["state"] == "running" else None,
        run["created_at"],
    )
    text = next(one for one in times if one)
    at = datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone()
    return f"{at:%m-%d %H:%M}"


def reason(run: Mapping[str, Any]) -> str:
    """Why a run is where it is, in few words; empty where its state says all."""
    found = run["why"] or {}
    if run["is_over"]:
        said = plain(run["message"])
    elif run["stop_asked_at"]:
        said = "It is being stopped."
    else:
        said = plain(found.get("what")) if found.get("code") != "running" else ""
    return (
        said
        if len(said) <= LONGEST_REASON
        else f"{said[: LONGEST_REASON - 1].rstrip()}…"
    )


def duration(seconds: int | None) -> str:
    """A length of time in its two largest units."""
    if seconds is None:
        return ""
    parts = []
    for unit, size in UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def limit(run: Mapping[str, Any]) -> str:
    """How long a run may run, and that its cluster does not know that yet."""
    pending = "" if run["limit_is_on_cluster"] else ", not on the cluster yet"
    return f"{duration(run['limit_seconds'])}{pending}"


def gpus(run: Mapping[str, Any]) -> str:
    """The GPUs of a run, or a dash."""
    return f"{run['gpus']} × {run['flavor']}" if run["gpus"] else "–"


def busy(found: Mapping[str, Any] | None) -> str:
    """How busy the GPUs of a run are, and were on the whole; empty where it is not known."""
    if not found:
        return ""
    since = f" Since {moment(found['idle_since'])}." if found["idle_since"] else ""
    parts = (f"{found['words']}{since}", found["overall"])
    return " ".join(filter(None, parts))


def place_name(place: Mapping[str, Any]) -> str:
    """A place as --place takes it."""
    return f"{place['cluster']}/{place['namespace']}"


def pool(found: Mapping[str, Any]) -> str:
    """GPUs of one flavor in a place, with what may be borrowed and their price."""
    borrowed = f" + {found['borrow']} borrowed" if found["borrow"] else ""
    spot = ", spot" if found["is_spot"] else ""
    price = f"{float(found['usd_per_gpu_hour']):.2f} USD an hour{spot}"
    amount = f"{found['gpus']}{borrowed} × {found['flavor']}"
    cuda = f", CUDA up to {found['cuda']}" if found["cuda"] else ""
    return f"{amount} ({found['device']}, {found['per_node']} on a node, {price}{cuda})"


def start(found: Mapping[str, Any] | None) -> str:
    """Whether a run would start at once; empty where the portal does not say."""
    return f"{found['sentence']}. {found['detail']}" if found else ""


def outcome(run: Mapping[str, Any]) -> list[str]:
    """What the portal says of a run beside its state, and what to do."""
    said = plain(run["message"]), plain(run["advice"])
    return [one for one in said if one]


def why(run: Mapping[str, Any]) -> str:
    """The sentences about a run's state: what, since, line, when, do."""
    found = run["why"]
    if found is None:
        over = (
            f"{run['state'].capitalize()} at {moment(run['ended_at'])}."
            if run["is_over"]
            else waits_for(run) or "It is being sent."
        )
        return "\n".join([over, *outcome(run)])
    what = f"{found['what']} (since {moment(found['since'])})"
    return "\n".join(
        plain(one) for one in (what, found["line"], found["when"], found["do"]) if one
    )


def before(run: Mapping[str, Any]) -> str:
    """The run that had to finish before this one was sent, or has to; empty without any."""
    return f"{run['after_name']} ({run['after']})" if run["after"] else ""


def waits_for(run: Mapping[str, Any]) -> str:
    """Which run has to finish before this one is sent; empty where none has to."""
    if run["state"] != "blocked":
        return ""
    return f"It begins when {run['after_name']} has finished."


def skipped(run: Mapping[str, Any], with_it: Iterable[Mapping[str, Any]]) -> str:
    """What does not run because this one was stopped; empty where nothing waited for it."""
    names = ", ".join(f"{plain(one['name'])} ({one['id']})" for one in with_it)
    if not names or run["state"] == "finished":
        return ""
    unless = "" if run["is_over"] else ", unless it finishes first"
    return f"Skipped with it{unless}: {names}."


def progress(run: Mapping[str, Any]) -> str:
    """Where a run is, in one line."""
    if run["stop_asked_at"] and not run["is_over"]:
        return plain(f"{run['name']}: it is being stopped.")
    found = run["why"] or {}
    parts = (
        f"{run['name']}: {run['state']}.",
        "" if found else waits_for(run),
        *(found.get(each, "") for each in ("what", "line", "when")),
    )
    return plain(" ".join(filter(None, parts)))


def time(minutes: int) -> str:
    """Minutes as --time takes them: 30d, 1h30m, 5m."""
    parts = []
    for unit, size in (("d", 1_440), ("h", 60), ("m", 1)):
        count, minutes = divmod(minutes, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0m"


def default(parameter: Mapping[str, Any]) -> Any:
    """What a template's parameter is when it is not given."""
    found = parameter["default"]
    if found is None:
        return "needed" if parameter["is_needed"] else None
    return (
        time(found)
        if parameter["name"] == "minutes" and isinstance(found, int)
        else found
    )


def limits(parameter: Mapping[str, Any]) -> str:
    """What a template's parameter takes."""
    if parameter["type"] == "count" and parameter["name"] == "minutes":
        return f"{time(parameter['minimum'])} to {time(parameter['maximum'])}"
    if parameter["type"] == "count":
        return f"{parameter['minimum']} to {parameter['maximum']}"
    return ", ".join(parameter["choices"]) or str(parameter["type"])
