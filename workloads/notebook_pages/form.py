"""The form on a profile's card: what is chosen in it, and what the server is called; and the forms to keep a server."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.http import HttpRequest

from accounts.idempotency import new_key
from notebooks.models import NotebookServer
from notebooks.profiles.choosing import FREE
from notebooks.profiles.document import Document, Option, chosen_beforehand
from notebooks.profiles.patterns import MAX_VALUE
from notebooks.servers.actions import MAX_REASON
from provisioning.desired.variables import SecretVariable
from web.fields import MomentField, StrictForm
from web.names import LONGEST_NAME
from web.refusals import Refused
from workloads.runs.pages.secrets_field import SecretsField, written

# What an input of an option is called, as a refusal names it.
OPTION = "options."


class LaunchForm(forms.Form):
    """A profile's options as selects, free ones with an input beside them. What was typed counts before the select."""

    token = forms.CharField(widget=forms.HiddenInput, max_length=64, required=False)
    profile = forms.CharField(widget=forms.HiddenInput, max_length=40)
    title = forms.CharField(
        label="Name",
        max_length=LONGEST_NAME,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        error_messages={"max_length": f"Write at most {LONGEST_NAME} characters."},
    )
    secrets = SecretsField()

    def __init__(
        self, document: Document, data: Mapping[str, Any] | None = None
    ) -> None:
        begins = {"profile": document.slug, "token": new_key()}
        super().__init__(data, initial=begins, auto_id=f"{document.slug}-%s")
        self.document = document
        for name, option in document.options.items():
            if option.choices:
                self.fields[f"{OPTION}{name}"] = _select(option)
            if option.free is not None:
                self.fields[f"{OPTION}{name}{FREE}"] = _typed(option)

    @property
    def of_options(self) -> list[forms.BoundField]:
        """The inputs of the profile's options."""
        return [self[name] for name in self.fields if name.startswith(OPTION)]

    @property
    def options(self) -> dict[str, str]:
        """What a clean form chose, in KubeSpawner's words."""
        said = {
            key: value
            for key, value in self.cleaned_data.items()
            if key.startswith(OPTION) and value
        }
        return {key.removeprefix(OPTION): value for key, value in said.items()}

    @property
    def secrets_named(self) -> list[SecretVariable]:
        """The variables from Secrets of a clean form."""
        return [SecretVariable.of(one) for one in self.cleaned_data["secrets"]]

    @property
    def brings_secrets(self) -> bool:
        """Whether something was written for them, so that the page shows it unfolded."""
        return "secrets" in self.errors or bool(self.data.get("secrets", "").strip())

    def add_refusal(self, refusal: Refused) -> None:
        """Put what was refused at the input at fault: a free choice's where something was typed there."""
        free = f"{refusal.field}{FREE}"
        is_typed = free in self.fields and (
            self.data.get(free) or refusal.field not in self.fields
        )
        name = free if is_typed else refusal.field
        is_seen = name in self.fields and not self.fields[name].widget.is_hidden
        self.add_error(name if is_seen else None, refusal.message)


def choices_in(request: HttpRequest) -> dict[str, dict[str, str]]:
    """What a card's form has chosen in its profile by now, by the profile; nothing where none was named."""
    said = (request.POST if request.method == "POST" else request.GET).dict()
    chosen = {
        key.removeprefix(OPTION): str(value)
        for key, value in said.items()
        if key.startswith(OPTION) and value
    }
    return {str(said["profile"]): chosen} if said.get("profile") else {}


class StartForm(forms.Form):
    """Other variables from Secrets for a notebook that is started again."""

    secrets = SecretsField()

    @classmethod
    def of(cls, server: NotebookServer) -> "StartForm":
        """The form with the variables that a server has."""
        return cls(initial={"secrets": written(server.secrets)})

    @property
    def secrets_named(self) -> list[SecretVariable]:
        """The variables of a clean form."""
        return [SecretVariable.of(one) for one in self.cleaned_data["secrets"]]


class KeepForm(forms.Form):
    """Why a server is kept though nobody uses it."""

    reason = forms.CharField(
        label="Why it is kept",
        max_length=MAX_REASON,
        required=False,
        help_text="From the second time on, so that your team sees why its GPUs wait.",
        error_messages={"max_length": f"Write at most {MAX_REASON} characters."},
    )


class ExemptForm(StrictForm):
    """Until when a notebook is exempt from idle stops, and why."""

    until = MomentField(label="Until (UTC)", help_text="At most 30 days from now.")
    reason = forms.CharField(
        label="Why it is exempt",
        max_length=MAX_REASON,
        help_text="Its owner and platform leads read this.",
        error_messages={
            "required": "Say why it is kept although it is idle.",
            "max_length": f"Write at most {MAX_REASON} characters.",
        },
    )


def _select(option: Option) -> forms.CharField:
    """The choices of an option. A choice that there is not is refused by the action, in its words."""
    beforehand = chosen_beforehand(option)
    choices = [(key, one.title) for key, one in option.choices.items()]
    initial = next(key for key, one in option.choices.items() if one is beforehand)
    return forms.CharField(
        label=option.title,
        required=False,
        initial=initial,
        widget=forms.Select(choices=choices),
    )


def _typed(option: Option) -> forms.CharField:
    assert option.free is not None  # noqa: S101 - asked for only then
    free = option.free
    also = "What you write here counts instead of the choice." if option.choices else ""
    return forms.CharField(
        label=free.title,
        required=False,
        max_length=MAX_VALUE,
        strip=True,
        help_text=" ".join(filter(None, (free.message, also))),
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "spellcheck": "false", "class": "input--code"}
        ),
    )
