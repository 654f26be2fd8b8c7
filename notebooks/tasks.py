"""What happens to hubs and notebook servers by the clock and by messages. Every task may run twice, late or never."""

from celery import shared_task

from audit import clock
from notebooks.hubs import observing
from notebooks.hubs.models import Hub
from notebooks.servers import ending, following
from notebooks.servers.enqueue import enqueue
from notebooks.servers.models import NotebookServer
from notebooks.servers.reconcile import reconcile

MAX_AT_ONCE = 200


@shared_task(name="notebooks.tasks.reconcile_servers")
def reconcile_servers() -> None:
    """Enqueue every server that has to be started, stopped or seen again; a hub that is away delays no other."""
    due = (
        NotebookServer.objects.due(clock.now())
        .order_by("requeue_at")
        .values_list("pk", flat=True)
    )
    for server_id in due[:MAX_AT_ONCE]:
        enqueue(server_id)


@shared_task(name="notebooks.tasks.reconcile_server")
def reconcile_server(server_id: int) -> None:
    """Do what is due for one server; nothing when another worker is at it."""
    reconcile(server_id, now=clock.now)


@shared_task(name="notebooks.tasks.follow_servers")
def follow_servers() -> None:
    """Ask every hub how its servers are."""
    following.follow(now=clock.now)


@shared_task(name="notebooks.tasks.end_servers")
def end_servers() -> None:
    """Stop what is idle, what ran long enough, and what nobody has a right to any more."""
    try:
        ending.end_what_is_over(now=clock.now())
    finally:
        ending.reclaim_idle(now=clock.now())


@shared_task(name="notebooks.tasks.observe_hubs")
def observe_hubs() -> None:
    """Enqueue every hub whose time has come; one that does not answer delays no other."""
    standing = Hub.objects.filter(cluster__written_off_at=None)
    for hub_id in standing.due(clock.now()).values_list("pk", flat=True):
        observe_hub.apply_async(args=[hub_id], expires=60)


@shared_task(name="notebooks.tasks.observe_hub")
def observe_hub(hub_id: int) -> None:
    """Find out whether a hub answers, takes the portal's token, and is of a version that the portal works with."""
    observing.observe(hub_id, now=clock.now)
