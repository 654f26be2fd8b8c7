"""Form fields that take exactly what they ask for: ASCII digits, an amount, a moment in UTC."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django import forms

from web.documents import DocumentRefused, parse, placed

DIGITS = re.compile(r"[0-9]{1,6}", re.ASCII)
AMOUNT = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,9})?", re.ASCII)
MINUTE = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?", re.ASCII)
INPUT = "%Y-%m-%dT%H:%M"
# What people write to each other, in characters.
LONGEST_TEXT = 2000
# The most GPUs that anybody asks for or gives back in one go.
MOST_GPUS = 9_999


def set_choices(form: forms.BaseForm, name: str, choices: Iterable[Any]) -> None:
    """Give a choice field of a form what may be chosen in it, as Django's choices are written."""
    field = form.fields[name]
    assert isinstance(field, forms.ChoiceField)  # noqa: S101 - told to the type checker
    field.choices = list(choices)


class WholeNumberField(forms.Field):
    """A whole number from `least` to `most`, written in plain digits and nothing else."""

    def __init__(self, *, most: int, of: str, least: int = 1, **options: Any) -> None:
        attrs = {"min": least, "max": most, "step": 1, "inputmode": "numeric"}
        super().__init__(widget=forms.NumberInput(attrs=attrs), **options)
        self.least, self.most, self.of = least, most, of

    def to_python(self, value: Any) -> int | None:
        """The number; None for nothing. Raises ValidationError."""
        if value in self.empty_values:
            return None
        if (
            not DIGITS.fullmatch(str(value))
            or not self.least <= int(value) <= self.most
        ):
            raise forms.ValidationError(
                f"Write a whole number of {self.of} from {self.least:,} to {self.most:,}.",
                code="number",
            )
        return int(value)


class PlainNumberField(forms.IntegerField):
    """A whole number in plain digits, for forms of models: its limits are the action's."""

    def to_python(self, value: Any) -> int | None:
        """The number; None for nothing. Raises ValidationError."""
        if value not in self.empty_values and not DIGITS.fullmatch(str(value).strip()):
            raise forms.ValidationError(
                "Write a whole number in plain digits.", code="number"
            )
        return super().to_python(value)


class AmountField(forms.DecimalField):
    """An amount in plain digits and at most one point: no exponent, and no digits of another script."""

    def to_python(self, value: Any) -> Decimal | None:  # type: ignore[override]
        """The amount; None for nothing. Raises ValidationError."""
        if value not in self.empty_values and not AMOUNT.fullmatch(str(value).strip()):
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        return super().to_python(value)


class MomentField(forms.Field):
    """A day and a time, taken as UTC."""

    widget = forms.DateTimeInput(format=INPUT, attrs={"type": "datetime-local"})

    def to_python(self, value: Any) -> datetime | None:
        """The aware moment; None for nothing. Raises ValidationError."""
        if value in self.empty_values:
            return None
        try:
            if not MINUTE.fullmatch(str(value)):
                raise ValueError(value)
            return datetime.fromisoformat(str(value)).replace(tzinfo=UTC)
        except ValueError as error:
            raise forms.ValidationError(
                "Write a day and a time, like 2026-11-28 18:00.", code="moment"
            ) from error

    def prepare_value(self, value: Any) -> Any:
        """What the browser's control shows."""
        return (
            value.astimezone(UTC).strftime(INPUT)
            if isinstance(value, datetime)
            else value
        )


class YamlField(forms.CharField):
    """A text that is YAML, cleaned to its value; raises ValidationError with the line at fault."""

    def __init__(self, *, rows: int = 8, **options: Any) -> None:
        attrs = {
            "rows": rows,
            "spellcheck": "false",
            "class": "font-mono",
            "autocapitalize": "off",
        }
        super().__init__(
            required=False, strip=False, widget=forms.Textarea(attrs=attrs), **options
        )

    def clean(self, value: Any) -> Any:
        """What the text says; an empty list for an empty text."""
        try:
            return parse(super().clean(value)) or []
        except DocumentRefused as refused:
            raise forms.ValidationError(
                [placed(*problem) for problem in refused.problems]
            ) from refused


class StrictForm(forms.Form):
    """A form that refuses fields it does not have, so that a misspelt one is never ignored."""

    also = frozenset({"csrfmiddlewaretoken"})

    def clean(self) -> dict[str, Any]:
        """Raises ValidationError for fields that nobody asked for."""
        unknown = sorted(set(self.data) - set(self.fields) - self.also)
        if unknown:
            raise forms.ValidationError(
                f"There is no field “{unknown[0][:40]}” here.", code="unknown_field"
            )
        return self.cleaned_data


class YamlFileForm(StrictForm):
    """The base of forms with a field `yaml`: a document that is pasted, or a file, which counts before that."""

    also = StrictForm.also | {"file"}

    def __init__(self, data: Any = None, *, text: str | None = None) -> None:
        if data is not None and text is not None:
            data = data.copy()
            data["yaml"] = text
        super().__init__(data, label_suffix="")

    def clean_yaml(self) -> str:
        """The text itself; that it is YAML was checked by the field. Raises ValidationError for none."""
        text = str(self.data.get("yaml", ""))
        if not text.strip():
            raise forms.ValidationError(
                "Paste a document, or choose a file.", code="required"
            )
        return text
