"""Forms that two people may have open at once: who saves changes what they changed, and nothing that others did."""

import hashlib
import json
from typing import TYPE_CHECKING, Any

from django import forms
from django.http import QueryDict

from web.fields import StrictForm

if TYPE_CHECKING:
    _Form = forms.BaseForm
else:
    # It stands before either kind of form that Django has.
    _Form = object

SHOWN = "shown"
LONGEST = 60
# The largest form has some forty fields, of which each is a name and a digest.
MOST_SHOWN = 20_000


class KeepsOthersEdits(_Form):
    """The base of forms of something that is there; their templates send `shown` along in a hidden field.

    A browser sends every field, those that nobody touched as they were when the page was made. These become what they
    are by now, and so do fields that the page did not have yet. A field that was touched and that somebody else has
    changed meanwhile is refused once, with what it is now; who saves again means it. Without `shown` every field counts
    as it was sent. The form is compared as it is read: of two who save within the same moment, the later counts.
    """

    also = StrictForm.also | {SHOWN}
    _is_current = False

    @property
    def shown(self) -> str:
        """What the form says of each field before anybody types, as digests in JSON."""
        return json.dumps(
            {name: _digest(self._current(name)) for name in self._visible()},
            separators=(",", ":"),
        )

    def full_clean(self) -> None:
        """Clean what was touched beside what others have saved; a field of both has an error."""
        clashes = []
        if self.is_bound and not self._is_current:
            self._is_current = True
            clashes = self._bring_up_to_date()
        super().full_clean()
        for name in clashes:
            self.add_error(
                name,
                f"Somebody has changed this meanwhile, to {self._words(name)}. Save again if yours is to stay.",
            )

    def _bring_up_to_date(self) -> list[str]:
        """Take what others have saved for what was not touched; the names of fields that both have changed."""
        seen, clashes = _read(self.data.get(SHOWN, "")), list[str]()
        if not seen:
            return clashes
        data = QueryDict(mutable=True)
        data.update(self.data)
        for name in self._visible():
            key, shown = self.add_prefix(name), seen.get(name)
            current, sent = self._current(name), _digest(self._sent(name))
            is_new = shown is None
            if sent == _digest(current) or shown == _digest(current):
                continue
            if is_new and key in self.data:
                continue
            if is_new or shown == sent:
                data.setlist(key, [each.replace("\n", "\r\n") for each in current])
            else:
                clashes.append(name)
        self.data = data
        return clashes

    def _visible(self) -> list[str]:
        return [
            name for name, field in self.fields.items() if not field.widget.is_hidden
        ]

    def _current(self, name: str) -> list[str]:
        """What the field says where nobody has typed, as a browser would send it."""
        field = self.fields[name]
        return _texts(field, self.get_initial_for_field(field, name))

    def _sent(self, name: str) -> list[str]:
        field = self.fields[name]
        raw = field.widget.value_from_datadict(
            self.data, self.files, self.add_prefix(name)
        )
        return _texts(field, raw)

    def _words(self, name: str) -> str:
        """What a field is by now, for people."""
        field, current = self.fields[name], self._current(name)
        if isinstance(field.widget, forms.CheckboxInput):
            return "on" if current else "off"
        if isinstance(field.widget, forms.widgets.ChoiceWidget):
            labels = {str(value): str(label) for value, label in field.widget.choices}
            current = [labels.get(each, each) for each in current]
        text = ", ".join(current)
        if len(text) > LONGEST:
            text = f"{text[:LONGEST]}…"
        return f"“{text}”" if text else "nothing"


def _texts(field: forms.Field, value: Any) -> list[str]:
    """A value as the field's control sends it, in order where it is several; texts with the line ends of files."""
    if isinstance(field.widget, forms.CheckboxInput):
        return ["on"] if value else []
    shown: Any = field.widget.format_value(field.prepare_value(value))
    several = shown if isinstance(shown, list) else [shown]
    return sorted(str(each or "").replace("\r\n", "\n").strip() for each in several)


def _digest(texts: list[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _read(text: str) -> dict[str, str]:
    """The digests that a page sent back; nothing for what is no such thing."""
    try:
        found = json.loads(text or "{}") if len(text) <= MOST_SHOWN else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
