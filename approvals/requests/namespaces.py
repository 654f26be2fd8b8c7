"""Which of its namespaces a team asks for something in, where it has several on one cluster."""

from collections.abc import Iterable
from typing import Any

from django import forms

from provisioning.models import Tenancy
from web.fields import set_choices

Choices = list[tuple[str, str]]


class NamespaceField(forms.ChoiceField):
    """A choice that is offered only where there is one: a team with one namespace on a cluster is not asked."""

    def __init__(self) -> None:
        super().__init__(label="Project and environment", required=False)


def choices_on(tenancies: Iterable[Tenancy], cluster: str) -> Choices:
    """The namespaces among these on a cluster, as lines to choose from; empty where there is nothing to choose."""
    there = [tenancy for tenancy in tenancies if tenancy.cluster.name == cluster]
    return [(row.namespace, label_of(row)) for row in there] if len(there) > 1 else []


def label_of(tenancy: Tenancy) -> str:
    """ "detection · Production"; reads the project."""
    return f"{tenancy.project.slug} · {tenancy.get_environment_display()}"


def offer(form: forms.Form, choices: Choices) -> None:
    """Set what a form's field `namespace` offers; what was chosen for another cluster becomes the first of this one.

    Replaces the form's data, so that the answer beside it is about what the field shows.
    """
    set_choices(form, "namespace", choices)
    chosen: Any = form.data.get("namespace", "")
    if chosen not in dict(choices):
        first = choices[0][0] if choices else ""
        form.data = {
            **{name: form.data[name] for name in form.data},
            "namespace": first,
        }
