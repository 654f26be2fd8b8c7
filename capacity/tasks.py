"""What happens in Azure by the clock and by messages. Every task may run twice, late or never."""

from celery import shared_task

from audit import clock
from capacity.increases import reconcile as increases
from capacity.increases.enqueue import enqueue as enqueue_increase
from capacity.metering import actions as metering
from capacity.metering.fleet import note_fleet
from capacity.models import (
    ModelAccount,
    Orphan,
    PriceRegion,
    QuotaIncrease,
    RegistryAccess,
    Reservation,
    Subscription,
)
from capacity.openai.enqueue import enqueue as enqueue_model_account
from capacity.openai.reconcile import reconcile as reconcile_account
from capacity.orphans.enqueue import enqueue as enqueue_orphan
from capacity.orphans.releasing import release
from capacity.prices import syncing
from capacity.registry import actions as registry
from capacity.registry.enqueue import enqueue as enqueue_access
from capacity.registry.reconcile import reconcile as reconcile_access
from capacity.reservations.enqueue import enqueue
from capacity.reservations.reconcile import reconcile
from capacity.subscriptions import following, observing
from capacity.subscriptions.enqueue import enqueue as enqueue_look

MAX_AT_ONCE = 200


@shared_task(name="capacity.tasks.reconcile_reservations")
def reconcile_reservations() -> None:
    """Enqueue every reservation and orphan for which something is to be done, or that is to be looked at again."""
    due = (
        Reservation.objects.in_azure()
        .due(clock.now())
        .order_by("requeue_at")
        .values_list("pk", flat=True)
    )
    for reservation_id in due[:MAX_AT_ONCE]:
        enqueue(reservation_id)
    orphans = (
        Orphan.objects.releasing()
        .due(clock.now())
        .order_by("requeue_at")
        .values_list("pk", flat=True)
    )
    for orphan_id in orphans[:MAX_AT_ONCE]:
        enqueue_orphan(orphan_id)


@shared_task(name="capacity.tasks.reconcile_reservation")
def reconcile_reservation(reservation_id: int) -> None:
    """Do what is due for one reservation; nothing when another worker is at it."""
    reconcile(reservation_id, now=clock.now)


@shared_task(name="capacity.tasks.reconcile_model_accounts")
def reconcile_model_accounts() -> None:
    """Enqueue every account of Azure OpenAI for which something is to be done, or that is to be looked at again."""
    due = (
        ModelAccount.objects.in_azure()
        .due(clock.now())
        .order_by("requeue_at")
        .values_list("pk", flat=True)
    )
    for account_id in due[:MAX_AT_ONCE]:
        enqueue_model_account(account_id)


@shared_task(name="capacity.tasks.reconcile_model_account")
def reconcile_model_account(account_id: int) -> None:
    """Do what is due for one account; nothing when another worker is at it."""
    reconcile_account(account_id, now=clock.now)


@shared_task(name="capacity.tasks.reconcile_registry_accesses")
def reconcile_registry_accesses() -> None:
    """Enqueue every access to the registry for which something is to be done; teams without one get theirs."""
    try:
        registry.follow_all(now=clock.now())
    finally:
        unfinished = RegistryAccess.objects.unfinished()
        due = unfinished.due(clock.now()).order_by("requeue_at")
        for access_id in due.values_list("pk", flat=True)[:MAX_AT_ONCE]:
            enqueue_access(access_id)


@shared_task(name="capacity.tasks.reconcile_registry_access")
def reconcile_registry_access(access_id: int) -> None:
    """Do what is due for one access; nothing when another worker is at it."""
    reconcile_access(access_id, now=clock.now)


@shared_task(name="capacity.tasks.release_orphan")
def release_orphan(orphan_id: int) -> None:
    """Do what is due for one orphan that is to be released; nothing when another worker is at it."""
    release(orphan_id, now=clock.now)


@shared_task(name="capacity.tasks.reconcile_increases")
def reconcile_increases() -> None:
    """Enqueue every request for more quota that is to be sent, or to be asked after."""
    due = QuotaIncrease.objects.in_progress().due(clock.now()).order_by("requeue_at")
    for increase_id in due.values_list("pk", flat=True)[:MAX_AT_ONCE]:
        enqueue_increase(increase_id)


@shared_task(name="capacity.tasks.reconcile_increase")
def reconcile_increase(increase_id: int) -> None:
    """Do what is due for one request for more quota; nothing when another worker is at it."""
    increases.reconcile(increase_id, now=clock.now)


@shared_task(name="capacity.tasks.observe_subscriptions")
def observe_subscriptions() -> None:
    """Enqueue a look for every subscription whose time has come; one that does not answer delays no other."""
    observing.keep_known(now=clock.now())
    for _ in range(Subscription.objects.due(clock.now()).count()):
        enqueue_look()


@shared_task(name="capacity.tasks.observe_subscription")
def observe_subscription() -> None:
    """Read one subscription whose time has come, and keep what follows from it for the fleet.

    A message names rows by numbers alone, and a subscription has none: whoever comes takes the next one.
    """
    for subscription_id in Subscription.objects.due(clock.now()).values_list(
        "pk", flat=True
    ):
        if observing.observe(subscription_id, now=clock.now):
            return


@shared_task(name="capacity.tasks.follow_beside")
def follow_beside(cluster_id: int) -> None:
    """Keep what is left to the kinds of GPU that share a cluster's quotas; the next reading does the same."""
    following.follow_beside(cluster_id)


@shared_task(name="capacity.tasks.read_fleet")
def read_fleet() -> None:
    """Keep a reading of the fleet's own limits."""
    note_fleet(now=clock.now())


@shared_task(name="capacity.tasks.forget_readings")
def forget_readings() -> None:
    """Delete the readings that no forecast looks at any more."""
    metering.forget(clock.now())


@shared_task(name="capacity.tasks.read_prices")
def read_prices() -> None:
    """Enqueue every region whose prices are to be read, and have kinds of GPU follow those that are known."""
    syncing.keep_known(now=clock.now())
    for region_id in PriceRegion.objects.due(clock.now()).values_list("pk", flat=True):
        read_prices_of.apply_async(args=[region_id], expires=60)
    syncing.follow()


@shared_task(name="capacity.tasks.read_prices_of")
def read_prices_of(region_id: int) -> None:
    """Read one region's prices; one that does not answer delays no other."""
    syncing.read(region_id, now=clock.now)
