"""An attack on every constraint of differences between the records and Azure; see tests/constraints.py."""

from collections.abc import Callable, Mapping
from typing import Any

from capacity.models import Orphan, Subscription
from tests.scene import NOW

Attack = Callable[[Any], object]


def orphan(**fields: Any) -> Orphan:
    """Two machines that the portal once reserved and does not know any more."""
    usual: dict[str, Any] = {
        "subscription": Subscription.objects.get_or_create(id="one", defaults={"next_look_at": NOW})[0],
        "key": "gpu/qm-1a2b3c4d-vision-17/nc24",
        "kind": "orphaned",
        "resource_group": "gpu",
        "group": "qm-1a2b3c4d-vision-17",
        "name": "NC24",
        "region": "eastus",
        "vm_size": "NC24",
        "machines": 2,
        "first_seen_at": NOW,
        "requeue_at": NOW,
        "seen_at": NOW,
    }
    return Orphan.objects.create(**usual | fields)


NAMED: Mapping[str, Attack] = {
    "a_parked_orphan_is_worked_on_by_nobody": lambda w: orphan(parked_at=NOW, lease_until=NOW),
    "a_difference_is_kept_once": lambda w: [orphan(), orphan()],
    "a_difference_is_of_a_known_kind": lambda w: orphan(kind="lost"),
    "a_difference_from_a_record_names_it": lambda w: orphan(kind="missing"),
    "nothing_of_others_is_released": lambda w: orphan(kind="foreign", release_asked_at=NOW),
    "only_what_is_released_is_worked_on": lambda w: orphan(operation={"step": "release"}),
    "no_more_of_an_orphan_is_used_than_it_holds": lambda w: orphan(used=3),
}
ALSO: Mapping[str, Attack] = {
    "an orphan that expects machines": lambda w: orphan(expected=2),
}
