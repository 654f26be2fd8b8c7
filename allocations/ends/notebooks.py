"""Notebooks end with the GPUs that carry them; their owners are told an hour before."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from allocations.ends.carrying import Held, Need, Uncarried, first_uncarried
from allocations.models import Allocation
from notebooks.servers import ending
from notebooks.servers.actions import stop_because
from notebooks.servers.models import NotebookServer
from notebooks.servers.states import State, StopReason
from provisioning.models import Tenancy
from reconciling.sweeping import for_each

RUNS = (State.STARTING, State.READY)
# How long a booking takes to begin at its time, when nothing stands in its way.
BEGINS_WITHIN = timedelta(minutes=2)


def uncarried_at(
    tenancies: Collection[int], *, now: datetime
) -> Mapping[int, Uncarried]:
    """When GPUs become too few for each server of some places that runs and has GPUs, by its id; two queries.

    What ought to have ended and has not, because ends are held back, still carries.
    """
    needs, borrowed = defaultdict(list), {}
    servers = NotebookServer.objects.filter(
        tenancy__in=tenancies, state__in=RUNS, flavor__isnull=False
    ).order_by("launched_at", "pk")
    for pk, tenancy, flavor, gpus, state, percent in servers.values_list(
        "pk", "tenancy", "flavor", "gpus", "state", "tenancy__cluster__borrow_percent"
    ):
        needs[tenancy, flavor].append(
            Need(notebook=pk, gpus=gpus, waits=state == State.STARTING)
        )
        borrowed[tenancy, flavor] = percent
    held = defaultdict(list)
    # What is booked carries from when it begins, unless something stands in its way.
    begins = Q(begun_at__isnull=False) | Q(
        hindrance="", starts_at__gt=now - BEGINS_WITHIN
    )
    for one in Allocation.objects.granted().filter(
        begins, tenancy__in=tenancies, gpus__gt=0
    ):
        held[one.tenancy_id, one.flavor_id].append(
            Held(
                allocation=one.pk,
                gpus=one.gpus,
                starts=one.begun_at or one.starts_at,
                ends=one.kept_until if one.kept_until > now else None,
                notebook=one.notebook_id,
            )
        )
    found: dict[int, Uncarried] = {}
    for place, those in needs.items():
        found |= first_uncarried(
            those, held[place], borrow_percent=borrowed[place], now=now
        )
    return found


def end_with_their_gpus(*, now: datetime) -> None:
    """Tell the owners of notebooks whose GPUs end within the hour, and stop those whose GPUs have ended.

    Where GPUs went before anybody could be told, the notebook has half an hour.
    """
    servers = list(
        NotebookServer.objects.filter(state__in=RUNS, flavor__isnull=False).described()
    )
    found = uncarried_at({one.tenancy_id for one in servers}, now=now)

    def follow(server: NotebookServer) -> None:
        end = found.get(server.pk)
        ending.keep_told(server, None if end is None else end.at, now=now)
        if (
            end is not None
            and end.at <= now
            and server.told_end is not None
            and server.told_end <= now
        ):
            _stop(server, now=now)

    for_each(servers, follow)


@transaction.atomic
def _stop(server: NotebookServer, *, now: datetime) -> None:
    """Stop a server, unless its team was granted more since it was looked at."""
    Tenancy.objects.locked().get(pk=server.tenancy_id)
    end = uncarried_at([server.tenancy_id], now=now).get(server.pk)
    if end is not None and end.at <= now:
        stop_because(server.pk, StopReason.END, now=now)


def lock_those_of(tenancy: Tenancy) -> None:
    """Lock the notebooks of a locked place that run, before anything is recorded."""
    list(
        NotebookServer.objects.locked()
        .filter(tenancy=tenancy, state__in=RUNS)
        .order_by("pk")
    )


def stop_those_with_pods(
    tenancy: Tenancy, pods: Collection[str], *, now: datetime
) -> None:
    """Stop the notebooks of a locked place whose pods have to stop, so that their owners read why."""
    for server in NotebookServer.objects.filter(
        tenancy=tenancy, state__in=RUNS
    ).order_by("pk"):
        if any(server.is_pod(name) for name in pods):
            stop_because(server.pk, StopReason.END, now=now)
