"""The question to the chain: how many GPUs more of which kind, for whom, and whether to be granted or to start."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from accounts.models import User
from capacity.chain.links import Question
from fleet.models import Cluster, Flavor
from provisioning.models import Tenancy

MAX_GPUS = 10_000
QUESTIONS = ((Question.GRANT.value, "be granted"), (Question.START.value, "start now"))


class QuestionForm(forms.Form):
    """What people ask the chain on its page; what is left out is asked for a machine of the first kind."""

    gpus = forms.IntegerField(label="GPUs more", min_value=1, max_value=MAX_GPUS)
    flavor = forms.ChoiceField(label="Kind")
    space = forms.ChoiceField(label="For", required=False)
    question = forms.ChoiceField(label="To", choices=QUESTIONS)

    def __init__(
        self,
        sent: Mapping[str, Any],
        *,
        flavors: Sequence[Flavor],
        spaces: Sequence[Tenancy],
    ) -> None:
        first = flavors[0]
        asked = {
            "gpus": str(first.gpus_per_node),
            "flavor": first.name,
            "space": "",
            "question": Question.GRANT.value,
        }
        super().__init__(
            {**asked, **{key: sent[key] for key in asked if sent.get(key)}}
        )
        self._flavors = {one.name: one for one in flavors}
        self._spaces = {one.namespace: one for one in spaces}
        self.fields["flavor"].choices = [(one.name, one.kind) for one in flavors]  # type: ignore[attr-defined]
        self.fields["space"].choices = [  # type: ignore[attr-defined]
            ("", "any team"),
            *((one.namespace, f"{one.team.name}: {one.namespace}") for one in spaces),
        ]

    @property
    def chosen_flavor(self) -> Flavor:
        """The kind that is asked for."""
        return self._flavors[self.cleaned_data["flavor"]]

    @property
    def chosen_tenancy(self) -> Tenancy | None:
        """The namespace that is asked for; None for whichever."""
        return self._spaces.get(self.cleaned_data["space"])

    @property
    def chosen_question(self) -> Question:
        """What is asked."""
        return Question(self.cleaned_data["question"])


def spaces_of(cluster: Cluster, user: User) -> list[Tenancy]:
    """The namespaces on a cluster that a person may ask about; one query."""
    rows = Tenancy.objects.present().visible_to(user).filter(cluster=cluster)
    return list(rows.select_related("team").order_by("team__name", "namespace"))
