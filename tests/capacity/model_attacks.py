"""An attack on every constraint of models in Azure OpenAI and of access to the registry, past every action."""

from collections.abc import Callable, Mapping
from typing import Any

from capacity.models import (
    ModelAccount,
    ModelEndpoint,
    ModelQuota,
    RegistryAccess,
    Subscription,
)
from tests import factories
from tests.scene import NOW

Attack = Callable[[Any], object]


def endpoint(w: Any, **fields: Any) -> ModelEndpoint:
    """A model that is being made for a team."""
    return factories.model_endpoint(w.scene.team, **fields)


def account(w: Any, **fields: Any) -> ModelAccount:
    """Its account, with these changes."""
    made = endpoint(w).account
    for name, value in fields.items():
        setattr(made, name, value)
    made.save()
    return made


def again(row: Any) -> None:
    """The same row once more."""
    row.pk = None
    row.save(force_insert=True)


def quota() -> ModelQuota:
    """A model of which nothing is used."""
    subscription, _ = Subscription.objects.get_or_create(
        id="one", defaults={"next_look_at": NOW}
    )
    return ModelQuota.objects.create(
        subscription=subscription,
        region="eastus",
        model="gpt-4o",
        sku="Standard",
        version="1",
        quota="OpenAI.Standard.gpt-4o",
        limit=9,
        used=0,
        seen_at=NOW,
    )


def access(w: Any, **fields: Any) -> RegistryAccess:
    """Access to a registry that nobody has yet."""
    team = w.scene.team
    usual = {
        "registry": "one",
        "group": team.entra_group,
        "created_at": NOW,
        "requeue_at": NOW,
        "generation": 1,
    }
    return RegistryAccess.objects.create(team=team, **usual | fields)


NAMED: Mapping[str, Attack] = {
    "a_parked_modelaccount_is_worked_on_by_nobody": lambda w: account(
        w, parked_at=NOW, lease_until=NOW
    ),
    "a_modelaccount_observes_what_was_wanted": lambda w: account(
        w, observed_generation=2
    ),
    "a_team_has_one_model_account_in_a_region": lambda w: again(account(w)),
    "a_model_account_is_in_a_known_state": lambda w: ModelAccount.objects.create(
        team=w.scene.team, region="x", created_at=NOW, requeue_at=NOW, state="asleep"
    ),
    "a_model_account_that_is_ready_has_an_address": lambda w: account(
        w, state="ready", ready_at=NOW
    ),
    "nobody_may_call_a_deleted_model_account": lambda w: account(w, deleted_at=NOW),
    "a_model_is_deployed_once_in_an_account": lambda w: again(endpoint(w)),
    "a_model_endpoint_is_in_a_known_state": lambda w: endpoint(
        w, state="asleep", capacity=0
    ),
    "a_model_endpoint_is_deployed_in_a_known_way": lambda w: endpoint(w, sku="Batch"),
    "a_model_endpoint_that_is_wanted_has_a_capacity": lambda w: endpoint(w, capacity=0),
    "a_model_endpoint_says_since_when": lambda w: endpoint(w, state="ready"),
    "a_deleted_model_endpoint_holds_nothing": lambda w: endpoint(w, deleted_at=NOW),
    "a_refusal_of_a_model_says_why": lambda w: endpoint(w, refusal="Because."),
    "a_model_is_in_a_region_once": lambda w: [quota(), quota()],
    "a_parked_registryaccess_is_worked_on_by_nobody": lambda w: access(
        w, parked_at=NOW, lease_until=NOW
    ),
    "a_registryaccess_observes_what_was_wanted": lambda w: access(
        w, observed_generation=2
    ),
    "a_team_has_one_access_to_a_registry": lambda w: [access(w), access(w)],
    "an_access_that_was_granted_is_of_a_group": lambda w: access(
        w, granted_at=NOW, login_server="x"
    ),
}
