"""Buttons, fields, choices and links between views."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from django import template
from django.forms import (
    BaseForm,
    BoundField,
    DateInput,
    DateTimeInput,
    Textarea,
    TextInput,
)
from django.forms.utils import flatatt
from django.utils.safestring import SafeString

from ui.parts import Choice, Link, StepLink

register = template.Library()
Context = dict[str, object]
# What is typed into these may be written in either direction.
TEXTS = (TextInput, Textarea)
# How many letters a choice may have that stands beside others in one line.
SHORT_CHOICE = 24


@register.inclusion_tag("parts/button.html")
def button(
    label: str,
    kind: str = "",
    *,
    icon: str = "",
    key: str = "",
    href: str = "",
    name: str = "",
    value: str = "",
    type: str = "submit",
    small: bool = False,
    disabled: bool = False,
    opens: str = "",
) -> Context:
    """A button, or a link when it has `href`; kind: primary, bad, quiet; `opens` is a dialog's id."""
    return {
        "tag": "a" if href else "button",
        "label": label,
        "kind": kind,
        "icon_name": icon,
        "key": key,
        "href": href,
        "name": name,
        "value": value,
        "type": "button" if opens else type,
        "small": small,
        "disabled": disabled,
        "opens": opens,
    }


@register.inclusion_tag("parts/field.html")
def field(
    bound: BoundField,
    suffix: str = "",
    optional: bool | None = None,
    help: str = "",
    required: bool = False,
) -> Context:
    """Label, control, help and errors of one form field, tied together for readers.

    `required` says that it is needed as things stand, where the form itself can do without.
    """
    kind = _field_kind(bound)
    said = [f"{bound.auto_id}-help"] if (help or bound.help_text) else []
    said += [f"{bound.auto_id}-here"] if (takes_utc := _takes_utc(bound)) else []
    said += [f"{bound.auto_id}-error"] if bound.errors else []
    own = bound.field.widget.attrs.get("class", "")
    attrs: dict[str, str | bool] = (
        {} if kind in ("check", "radios") else {"class": f"input {own}".strip()}
    )
    if isinstance(bound.field.widget, TEXTS):
        attrs["dir"] = "auto"
    if required:
        attrs["aria-required"] = "true"
    if said:
        attrs["aria-describedby"] = " ".join(said)
    if bound.errors:
        attrs["aria-invalid"] = "true"
    return {
        "bound": bound,
        "control": bound.as_widget(attrs=attrs) if kind != "radios" else "",
        "kind": kind,
        "sentences": kind == "radios" and _are_sentences(bound),
        "described": " ".join(said),
        "suffix": suffix,
        "takes_utc": takes_utc,
        "help": help or bound.help_text,
        "optional": (not bound.field.required) if optional is None else optional,
    }


def _are_sentences(bound: BoundField) -> bool:
    """Whether a choice is too long to stand beside another: then each has a line of its own."""
    return any(len(str(choice.choice_label)) > SHORT_CHOICE for choice in bound)


def _takes_utc(bound: BoundField) -> bool:
    """Whether a field takes a moment or an hour in UTC, which the browser tells where the reader is, too."""
    widget = bound.field.widget
    return isinstance(widget, DateTimeInput) or "data-utc-hour" in widget.attrs


def _field_kind(bound: BoundField) -> str:
    """How a widget is laid out: a line with a control, a single check box, or a group of choices."""
    kind = getattr(bound.field.widget, "input_type", "")
    if bound.field.widget.use_fieldset:
        return "radios"
    return "check" if kind == "checkbox" else "line"


@register.inclusion_tag("parts/error_summary.html", takes_context=True)
def error_summary(
    context: template.Context,
    form: BaseForm,
    title: str = "Nothing was sent yet. Please look at this:",
    at: Mapping[str, str] | None = None,
) -> Context:
    """Links to every field with an error; nothing when there is none. `at` is the id of a field written by hand.

    A page that is a fresh answer has the focus there, and a title that begins with "Error: ".
    """
    request = context.get("request")
    is_fresh = not getattr(request, "htmx", None)
    if request is not None and is_fresh and form.errors:
        request.is_refused = True  # base.html writes the title after this
    elsewhere = at or {}
    return {
        "form": form,
        "title": title,
        "fields": [
            (elsewhere.get(bound.name, bound.auto_id), bound)
            for bound in form
            if bound.errors
        ],
        "is_fresh": is_fresh,
    }


@register.inclusion_tag("parts/choices.html")
def choice_cards(
    bound: BoundField, options: Sequence[Choice], wide: bool = False, legend: str = ""
) -> Context:
    """Radio cards for a field."""
    return {
        "bound": bound,
        "options": options,
        "chosen": str(bound.value() or ""),
        "wide": wide,
        "legend": legend,
    }


def is_filtered(form: BaseForm) -> bool:
    """Whether anything was chosen in a filter form that was given the query of its page's address."""
    return any(form.data.get(form.add_prefix(name)) for name in form.fields)


def is_day(bound: BoundField) -> bool:
    """Whether a field takes a day."""
    return isinstance(bound.field.widget, DateInput)


@register.inclusion_tag("parts/filter_bar.html")
def filter_bar(
    form: BaseForm,
    placeholder: str = "Search",
    clear: str = "",
    button: str = "Filter",
    icon: str = "list-filter",
) -> Context:
    """A GET form in one row; a field named `q` is the search box and has the key `/`. Days stay beside each other.

    `clear` is the address without any filter, offered where something is filtered.
    """
    return {
        "groups": [
            (is_range, list(fields)) for is_range, fields in groupby(form, key=is_day)
        ],
        "placeholder": placeholder,
        "clear": clear if is_filtered(form) else "",
        "button": button,
        "icon_name": icon,
    }


@register.filter
def as_input(bound: BoundField, placeholder: str = "") -> SafeString:
    """The control of a field with the input class, for layouts the `field` tag does not know."""
    attrs: dict[str, str | bool] = {"class": "input"}
    if isinstance(bound.field.widget, TEXTS):
        attrs["dir"] = "auto"
    if placeholder:
        attrs |= {
            "placeholder": placeholder,
            "data-key": "/",
            "data-key-label": placeholder,
        }
    return bound.as_widget(attrs=attrs)


@register.filter
def attributes(of: Mapping[str, object]) -> SafeString:
    """Attributes as they stand in a tag, each after a space: `True` is the name alone, and `False` is left out."""
    return flatatt({**of})


@register.inclusion_tag("parts/tabs.html")
def tabs(items: Sequence[Link], label: str) -> Context:
    """Links between views of one object."""
    return {"items": items, "label": label}


@register.inclusion_tag("parts/segments.html")
def segments(items: Sequence[Link], label: str) -> Context:
    """Links between ways to see one list."""
    return {"items": items, "label": label}


@register.inclusion_tag("parts/steps.html")
def steps(items: Sequence[StepLink]) -> Context:
    """Steps of a wizard."""
    return {"items": items}
