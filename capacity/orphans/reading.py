"""Looking through a subscription's reservations for what the portal's records do not have, or have otherwise."""

from datetime import datetime

from capacity.connection import Azure
from capacity.orphans import actions
from capacity.orphans.comparing import Group, Held, Recorded, differences
from capacity.reservations.models import Reservation
from capacity.reservations.reconcile import Names
from capacity.reservations.states import State
from capacity.subscriptions.models import Subscription
from capacity.tagging import MARK
from connectors.azure.compute import AzureCompute, ReservationGroup
from connectors.azure.compute import Reservation as InAzure
from connectors.azure.ids import parsed
from provisioning.clusters.installation import mark


def read(subscription: Subscription, azure: Azure, *, now: datetime) -> None:
    """Keep in what a subscription and the records differ; raises as the connector does, and keeps nothing then."""
    before = recorded_in(subscription)
    found = groups_in(azure.compute)
    after = recorded_in(subscription)
    actions.keep(
        subscription,
        differences(found, mark=mark(), before=before, after=after),
        now=now,
    )


def recorded_in(subscription: Subscription) -> list[Recorded]:
    """The reservations that the portal has in a subscription, or is about to have."""
    rows = (
        Reservation.objects.in_azure()
        .filter(subscription=subscription.pk)
        .select_related("team")
    )
    return [_recorded(one) for one in rows]


def groups_in(compute: AzureCompute) -> list[Group]:
    """Every reservation group of a subscription with its reservations; one call more for each group."""
    found = []
    for one in compute.groups():
        at = parsed(one.id)
        if at is not None:
            found.append(
                _group(one, at.group, compute.reservations(at.group, one.name))
            )
    return found


def _recorded(row: Reservation) -> Recorded:
    names = Names.of(row)
    return Recorded(
        number=row.pk,
        generation=row.generation,
        resource_group=row.resource_group,
        group=names.group,
        name=names.reservation,
        region=row.region,
        zone=row.zone,
        vm_size=row.vm_size,
        machines=row.machines,
        # What Azure refuses may have been there, and be paid.
        is_reserved=row.state == State.RESERVED and (row.is_true or row.is_refused),
    )


def _group(
    one: ReservationGroup, resource_group: str, reservations: list[InAzure]
) -> Group:
    return Group(
        resource_group=resource_group,
        name=one.name,
        region=one.location,
        mark=str(one.tags.get(MARK, "")),
        team=str(one.tags.get("team", "")),
        reservations=[
            Held(
                name=each.name,
                vm_size=each.size,
                zone=each.zone,
                machines=each.held,
                used=each.used,
                associated=len(each.associated),
                mark=str(each.tags.get(MARK, "")),
            )
            for each in reservations
        ],
    )
