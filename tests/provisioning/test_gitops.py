"""What Flux or Argo CD keeps in order is never written to beside them."""

from typing import Any

import pytest

from connectors.errors import PermanentError
from provisioning.desired.gitops import keeper, refuse_kept_by_others
from provisioning.desired.manifests import tenancy_objects
from provisioning.desired.plan import Key, Step, Verb
from tests.provisioning.specs import SAMPLE

QUOTA = tenancy_objects(SAMPLE)[1]


def live(*managers: str) -> dict[str, Any]:
    return QUOTA | {
        "metadata": QUOTA["metadata"]
        | {"managedFields": [{"manager": name} for name in managers]}
    }


@pytest.mark.parametrize(
    ("managers", "who"),
    [
        (("quartermaster", "kustomize-controller"), "Flux"),
        (("argocd-controller",), "Argo CD"),
        (("argocd-application-controller", "kubectl"), "Argo CD"),
        (("quartermaster", "kubectl-edit"), ""),
        ((), ""),
    ],
)
def test_their_names_are_known(managers: tuple[str, ...], who: str) -> None:
    assert keeper(live(*managers)) == who
    assert keeper(QUOTA) == ""


@pytest.mark.parametrize("verb", [Verb.UPDATE, Verb.DELETE])
def test_the_first_write_to_it_is_refused_in_words(verb: Verb) -> None:
    key = Key.of(QUOTA)
    with pytest.raises(
        PermanentError, match="Flux keeps ResourceQuota team-quota in order"
    ) as refused:
        refuse_kept_by_others(
            [Step(verb, key, QUOTA)], {key: live("kustomize-controller")}
        )
    assert refused.value.code == "kept_by_others"


def test_what_needs_no_write_and_what_is_nobodys_is_no_matter() -> None:
    key = Key.of(QUOTA)
    refuse_kept_by_others(
        [Step(Verb.KEEP, key, QUOTA)], {key: live("kustomize-controller")}
    )
    refuse_kept_by_others([Step(Verb.UPDATE, key, QUOTA)], {key: live("kubectl")})
    refuse_kept_by_others([Step(Verb.CREATE, key, QUOTA)], {})
