"""An attack on every constraint of differences between the records and Azure; see tests/constraints.py."""

from collections.abc import Callable, Mapping
from typing import Any

from capacity.models import Orphan, Subscription
from tests.scene import NOW


def orphan(**fields: Any) -> Orphan:
    """A reservation that is the portal's and orphaned, past every action."""
    subscription, _ = Subscription.objects.get_or_create(
        pk="sub", defaults={"next_look_at": NOW}
    )
    usual = {
        "subscription": subscription,
        "key": "rg/group/one",
        "kind": "orphaned",
        "resource_group": "rg",
        "group": "group",
        "name": "one",
        "region": "eastus",
        "vm_size": "Standard_NC4as_T4_v3",
        "machines": 2,
        "first_seen_at": NOW,
        "seen_at": NOW,
        "requeue_at": NOW,
    }
    return Orphan.objects.create(**usual | fields)


NAMED: Mapping[str, Callable[[Any], object]] = {
    "a_parked_orphan_is_worked_on_by_nobody": lambda w: orphan(
        parked_at=NOW, lease_until=NOW
    ),
    "a_difference_is_kept_once": lambda w: (orphan(), orphan()),
    "a_difference_is_of_a_known_kind": lambda w: orphan(kind="lost"),
    "a_difference_from_a_record_names_it": lambda w: orphan(kind="missing"),
    "nothing_of_others_is_released": lambda w: orphan(
        kind="foreign", release_asked_at=NOW
    ),
    "only_what_is_released_is_worked_on": lambda w: orphan(operation={"token": "x"}),
    "no_more_of_an_orphan_is_used_than_it_holds": lambda w: orphan(used=3),
}
ALSO: Mapping[str, Callable[[Any], object]] = {
    "an orphan that expects machines": lambda w: orphan(expected=2),
}
