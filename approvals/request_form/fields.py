"""A form's field for each field of an offering's spec: a list to choose from, a number, or a text."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from catalogue.choices import Choice, is_suggested
from catalogue.offering import Offering
from web.fields import WholeNumberField

HELP: Mapping[str, str] = {
    "name": "Small letters, digits and hyphens, such as street-scenes.",
    "project": "One that the team has, or a new name: small letters, digits and hyphens, such as street-scenes.",
    "thousand_tokens_per_minute": "The ceiling; the price is for all of it, all the time.",
}
# A model to serve is written; a hosted one is chosen.
EXAMPLES: Mapping[str, str] = {"endpoint": "For example: mistral-7b-instruct."}
UNITS = {"gpus": "GPUs", "gib": "GiB", "gpus_per_replica": "GPUs"}
NOT_ON_THE_LIST = {"flavor": "Choose a kind of GPU that is offered where the team is."}
MOST_RADIOS = 4
LONGEST_NAME = 40
UNWRITTEN = {"required": "Still to be written."}


def field_for(
    offering: Offering,
    name: str,
    schema: Mapping[str, Any],
    lines: Sequence[Choice] | None,
) -> forms.Field:
    """The field of a spec's field, from its JSON Schema and the lines that may be chosen, None for what is no list."""
    label, help_text = str(schema.get("title", name)), HELP.get(name, "")
    if is_suggested(schema):
        return forms.CharField(
            label=label,
            max_length=LONGEST_NAME,
            help_text=help_text,
            widget=forms.TextInput(
                attrs={"list": f"{name}-list", "autocomplete": "off"}
            ),
            error_messages=UNWRITTEN,
        )
    if lines is not None:
        return _list(offering, name, schema, lines, label=label)
    if schema.get("type") == "integer":
        return WholeNumberField(
            label=label,
            most=int(schema.get("maximum", 9_999)),
            of=UNITS.get(name, "units"),
            help_text=help_text,
        )
    return forms.CharField(
        label=label,
        max_length=int(schema.get("maxLength", 80)),
        help_text=EXAMPLES.get(offering.key, help_text)
        if name == "model"
        else help_text,
        error_messages=UNWRITTEN,
    )


def _list(
    offering: Offering,
    name: str,
    schema: Mapping[str, Any],
    lines: Sequence[Choice],
    *,
    label: str,
) -> forms.ChoiceField:
    """What is chosen from a list; a few fixed words are all shown at once."""
    possible = [line for line in lines if not line.reason]
    unlisted = NOT_ON_THE_LIST.get(name, "Choose one of the list.")
    said = unlisted if possible else "There is nothing to choose from for this team."
    few = "enum" in schema and len(possible) <= MOST_RADIOS
    return forms.ChoiceField(
        label=label,
        choices=in_groups(possible),
        required=all(line.value for line in possible),
        widget=forms.RadioSelect if few else forms.Select,
        help_text="" if possible else nothing_words(offering, name),
        error_messages={"invalid_choice": said, "required": said},
    )


def in_groups(lines: Sequence[Choice]) -> list[tuple[str, Any]]:
    """The lines as a field takes them, those of a group under its name."""
    found: list[tuple[str, Any]] = []
    groups: dict[str, list[tuple[str, str]]] = {}
    for line in lines:
        if not line.group:
            found.append((line.value, line.label))
            continue
        if line.group not in groups:
            groups[line.group] = []
            found.append((line.group, groups[line.group]))
        groups[line.group].append((line.value, line.short))
    return found


def nothing_words(offering: Offering, name: str) -> str:
    """Why a list is empty, and what to do."""
    if name == "flavor":
        return "The team is on no cluster with GPUs on offer. Ask for a namespace on one first."
    if name == "cluster":
        on = "on no cluster" if offering.key == "volume" else "on every cluster already"
        return f"The team is {on}."
    return "Nothing of this is offered now."
