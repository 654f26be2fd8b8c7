"""The field in which people name variables whose values stand in Secrets: one in a line, NAME=secret:key."""

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms

HELP = (
    "One in a line, such as HF_TOKEN=huggingface:token: the key token of the Secret huggingface in your namespace. "
    "The portal reads no Secret."
)


class SecretsField(forms.CharField):
    """Lines of names, which are no values. Whether a name may be used is for the action to say."""

    widget = forms.Textarea(
        attrs={"rows": 2, "class": "input--code", "spellcheck": "false"}
    )

    def __init__(self) -> None:
        super().__init__(
            label="Variables from Secrets",
            required=False,
            max_length=20_000,
            help_text=HELP,
        )

    def clean(self, value: Any) -> list[dict[str, str]]:
        """Each line's three names; raises ValidationError for a line that does not have all of them."""
        text = super().clean(value)
        return [_named(line) for line in map(str.strip, text.splitlines()) if line]


def written(secrets: Iterable[Mapping[str, str]]) -> str:
    """Variables from Secrets as people write them into the field."""
    return "\n".join(
        f"{one['variable']}={one['secret']}:{one['key']}" for one in secrets
    )


def _named(line: str) -> dict[str, str]:
    variable, _, source = line.partition("=")
    secret, _, key = source.partition(":")
    found = {
        "variable": variable.strip(),
        "secret": secret.strip(),
        "key": key.strip(),
    }
    if not all(found.values()):
        raise forms.ValidationError(
            f"“{line[:60]}” is not of the form NAME=secret:key.", code="secrets"
        )
    return found
