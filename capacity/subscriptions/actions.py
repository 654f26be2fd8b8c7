"""What changes about subscriptions beside what is read: leads have one read again, and its rights are kept."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import transaction

from accounts.models import User
from accounts.roles import Permission
from audit.actors import PORTAL
from audit.events import Kind
from audit.log import record
from capacity.subscriptions.enqueue import enqueue_on_commit
from capacity.subscriptions.models import Subscription
from fleet.models import Cluster
from web.refusals import NoRight

Missing = Mapping[str, Sequence[str]]


def require_sight(user: User) -> None:
    """Raises NoRight for who may not see what the portal itself may do in Azure."""
    if not user.may(Permission.SEE_AUDIT):
        raise NoRight(
            "Leads and auditors see what the portal may do in Azure.",
            code="not_an_auditor",
        )


def require_lead(user: User) -> None:
    """Raises NoRight for who does not manage clusters."""
    if not user.may(Permission.MANAGE_CLUSTERS):
        raise NoRight(
            "Platform leads have Azure read again.", code="not_a_platform_lead"
        )


@transaction.atomic
def check_again(subscription_id: str, *, by: User, now: datetime) -> Subscription:
    """Have a subscription read now, and with it what the portal may do there.

    Raises NoRight for who is no platform lead, Subscription.DoesNotExist.
    """
    require_lead(by)
    row = Subscription.objects.select_for_update(no_key=True).get(pk=subscription_id)
    row.next_look_at = now
    row.save(update_fields=["next_look_at"])
    record(
        Kind.SUBSCRIPTION_CHECK_ASKED,
        actor=by.as_actor(),
        subject=("subscription", row.pk),
    )
    enqueue_on_commit()
    return row


def read_soon(subscription_id: str, *, now: datetime) -> None:
    """Have a subscription read in the next round, because what was changed there counts towards its quotas."""
    Subscription.objects.filter(pk=subscription_id).update(next_look_at=now)


@transaction.atomic
def keep_rights(subscription_id: str, missing: Missing, *, now: datetime) -> None:
    """Keep which actions the portal lacks in a subscription, by what they are needed for."""
    row = (
        Subscription.objects.select_for_update(no_key=True)
        .filter(pk=subscription_id)
        .first()
    )
    if row is None:
        return
    found = {purpose: [*actions] for purpose, actions in missing.items()}
    before, row.missing_rights = row.missing_rights, found
    row.rights_checked_at, row.rights_message = now, ""
    row.save(update_fields=["missing_rights", "rights_checked_at", "rights_message"])
    if before != found and (before is not None or found):
        lacking = sorted({action for actions in found.values() for action in actions})
        record(
            Kind.SUBSCRIPTION_RIGHTS_CHANGED,
            actor=PORTAL,
            subject=("subscription", row.pk),
            lacking=lacking,
        )


def note_cluster(cluster_id: int, problem: str) -> None:
    """Keep why a cluster's pools could not be read, empty when they could; what was known of them stays."""
    rows = Cluster.objects.filter(pk=cluster_id)
    rows.exclude(azure_message=problem[:600]).update(azure_message=problem[:600])


def note_unchecked(subscription_id: str, why: str) -> None:
    """Keep why the rights could not be read; what was known of them stays."""
    Subscription.objects.filter(pk=subscription_id).update(rights_message=why[:600])
