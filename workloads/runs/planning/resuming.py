"""A run that goes on from another one's checkpoints with other values: what it is then, and what changes. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from workloads.runs.planning.plan import Plan, Problem, Submission, topology_of
from workloads.runs.planning.words import level_words
from workloads.templates.library import Template
from workloads.templates.pods import priority_of, volume_of

# The parameters that a change names stand in `values`; these are the rest of a submission, with their labels.
FRAME: Mapping[str, str] = {
    "template": "Template",
    "title": "Name",
    "flavor": "Kind of GPU",
    "priority": "Priority",
    "script": "Script",
    "repository": "Source",
    "claims": "Volumes",
    "secrets": "Secrets",
    "topology": "Topology",
    "after": "Begins after",
}
LONGEST_SHOWN = 200


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What one input was and what it is now, as people read it; `field` is its name in the API."""

    field: str
    label: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class ChangedPlan(Plan):
    """The plan of a run after an earlier one, what it asks for, and how it differs from that."""

    asked: Submission
    differences: Sequence[Difference]


def submission_of(kept: Mapping[str, Any]) -> Submission:
    """A submission as it was, from what a row keeps of it."""
    values = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in kept["values"].items()
    }
    return Submission(**{**kept, "values": values})


def with_changes(
    kept: Submission, changes: Mapping[str, Any], templates: Mapping[str, Template]
) -> Submission:
    """A submission with changes: `values` and `variables` name by name (None takes one away), the rest as a whole.

    Another template keeps the values that it has a parameter for. A script takes the place of a source, and the other
    way round.
    """
    values = dict(kept.values)
    template = templates.get(str(changes.get("template", kept.template)))
    if template is not None and template.slug != kept.template:
        names = {one.name for one in template.parameters}
        values = {name: value for name, value in values.items() if name in names}
    whole = {name: value for name, value in changes.items() if name in FRAME}
    if whole.get("script") and "repository" not in whole:
        whole["repository"] = None
    if whole.get("repository") and "script" not in whole:
        whole["script"] = None
    return replace(
        kept,
        **whole,
        values=_merged(values, changes.get("values", {})),
        variables=_merged(kept.variables, changes.get("variables", {})),
    )


def refused_resume(
    before: Submission, after: Submission, plan: Plan, *, written: Any
) -> Iterator[Problem]:
    """Why a plan cannot go on from checkpoints, which the objects `written` of the earlier run kept."""
    folder = after.resume_from
    asked = after.values.get("checkpoint")
    if asked and asked != before.values.get("checkpoint"):
        yield Problem(
            field="checkpoint",
            text=f"It goes on in {folder}, and keeps its checkpoints there. Leave the place for checkpoints as it was.",
        )
    kept = volume_of(written, folder)
    if plan.manifests and kept and volume_of(plan.manifests, folder) != kept:
        name, path = kept
        yield Problem(
            field="claims",
            text=f"The checkpoints are on the volume {name} at {path}. Mount it there, for writing too.",
            code="no_checkpoints",
        )


def differences(
    before: Submission,
    after: Submission,
    template: Template | None,
    *,
    written: Any,
    plan: Plan,
) -> list[Difference]:
    """What changes, in the order of the form; a value that was left out counts as the template's default."""
    before = replace(before, priority=priority_of(written) or before.priority)
    after = replace(
        after, priority=priority_of(plan.manifests) or after.priority or before.priority
    )
    found = [
        _difference(name, label, _in_frame(before, name), _in_frame(after, name))
        for name, label in FRAME.items()
    ]
    parameters = (
        {one.name: one for one in template.parameters} if template is not None else {}
    )
    for name in dict.fromkeys((*parameters, *before.values, *after.values)):
        known = parameters.get(name)
        usual = known.default if known is not None else None
        label = known.title if known is not None else name
        found.append(
            _difference(
                name,
                label,
                before.values.get(name, usual),
                after.values.get(name, usual),
            )
        )
    found += [
        _difference(
            "variables", name, before.variables.get(name), after.variables.get(name)
        )
        for name in dict.fromkeys((*before.variables, *after.variables))
    ]
    return [one for one in found if one is not None]


def _in_frame(asked: Submission, name: str) -> object:
    value = getattr(asked, name)
    return f"run {value}" if name == "after" and value is not None else value


def _difference(
    field: str, label: str, before: object, after: object
) -> Difference | None:
    before, after = _comparable(before), _comparable(after)
    if before == after:
        return None
    words = (_shown(before), _shown(after))
    if words[0] == words[1]:
        words = (words[0], f"{words[1]}, changed")
    return Difference(field=field, label=label, before=words[0], after=words[1])


def _comparable(value: Any) -> Any:
    """Nothing is nothing, however it is written; a list of words is a tuple."""
    if value in (None, "", (), [], {}):
        return None
    if isinstance(value, Collection) and not isinstance(value, str | Mapping):
        return tuple(_comparable(one) for one in value)
    if isinstance(value, Mapping):
        return {name: one for name, one in value.items() if one not in (None, False)}
    return value


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " ".join(_shown(one) for one in value)[:LONGEST_SHOWN]
    if not isinstance(value, Mapping):
        return str(value)[:LONGEST_SHOWN]
    if "file" in value:
        count = str(value["text"]).count("\n") + 1
        return f"{value['file']}, {count} lines"
    if "level" in value:
        return level_words(topology_of(value))
    if "url" in value:
        by = f" by {value['secret']}" if value.get("secret") else ""
        return f"{value['url']} at {value['revision']}{by}"[:LONGEST_SHOWN]
    if "variable" in value:
        return f"{value['variable']}={value['secret']}:{value['key']}"
    return f"{value['name']}:{value['path']}{':ro' if value.get('read_only') else ''}"


def _merged(kept: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in {**kept, **changed}.items() if value is not None
    }
