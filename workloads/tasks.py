"""What happens to runs by the clock and by messages. Every task may run twice, late or never."""

from collections.abc import Callable

from celery import shared_task

from audit import clock
from reconciling.sweeping import for_each
from workloads.gpu_use import measuring
from workloads.runs import ending_soon, following, sending, still_blocked, telling
from workloads.runs.enqueue import enqueue
from workloads.runs.logs import keeping
from workloads.runs.models import Run
from workloads.runs.planning import abilities
from workloads.service_levels import measuring as measuring_services

MAX_AT_ONCE = 200


@shared_task(name="workloads.tasks.look_after_runs")
def look_after_runs() -> None:
    """Enqueue every run that has to be sent or stopped; a cluster that is away delays no other."""
    due = (
        Run.objects.due(clock.now()).order_by("requeue_at").values_list("pk", flat=True)
    )
    for run_id in due[:MAX_AT_ONCE]:
        enqueue(run_id)


@shared_task(name="workloads.tasks.look_after_run")
def look_after_run(run_id: int) -> None:
    """Do what is due for one run; nothing when another worker is at it."""
    sending.look_after(run_id, now=clock.now)


@shared_task(name="workloads.tasks.follow_runs")
def follow_runs() -> None:
    """Write down what became of every run that is on a cluster."""
    following.follow(
        now=clock.now,
        gone=lambda run_id: check_run.apply_async(args=[run_id], expires=30),
        sent_back=lambda run_id: keep_log.apply_async(args=[run_id], expires=5),
    )


@shared_task(name="workloads.tasks.check_run")
def check_run(run_id: int) -> None:
    """Ask the cluster for a run that the copy has no more."""
    following.check(run_id, now=clock.now)


@shared_task(name="workloads.tasks.keep_log")
def keep_log(run_id: int) -> None:
    """Keep the last lines of a run that goes back to the line, while its pods are there."""
    keeping.keep_of_sent_back(run_id, now=clock.now())


@shared_task(name="workloads.tasks.keep_logs")
def keep_logs() -> None:
    """Keep the last lines of what has ended or reaches its time limit, before its pods go; tell of ends that wait."""
    steps: tuple[Callable[[], None], ...] = (
        lambda: keeping.keep_of_ending(now=clock.now),
        lambda: keeping.keep_of_ended(now=clock.now),
        # Also where a log cannot be kept: who waits for it is told without.
        lambda: telling.tell_overdue(now=clock.now()),
    )
    for_each(steps, lambda step: step())


@shared_task(name="workloads.tasks.tell_of_ends")
def tell_of_ends() -> None:
    """Tell people of their runs that are about to reach their time limit."""
    ending_soon.tell_of_ends(now=clock.now())


@shared_task(name="workloads.tasks.tell_of_blocked")
def tell_of_blocked() -> None:
    """Tell people of their runs that wait for another one for long."""
    still_blocked.tell_of_blocked(now=clock.now())


@shared_task(name="workloads.tasks.forget_logs")
def forget_logs() -> None:
    """Delete what was kept for long enough."""
    keeping.forget(now=clock.now())


@shared_task(name="workloads.tasks.measure_gpus")
def measure_gpus() -> None:
    """Ask every cluster's Prometheus how busy the GPUs of runs and notebooks are."""
    measuring.measure(now=clock.now)


@shared_task(name="workloads.tasks.measure_services")
def measure_services() -> None:
    """Count the requests of the services whose teams promise something, and tell of error budgets that go."""
    measuring_services.measure(now=clock.now)


@shared_task(name="workloads.tasks.learn_abilities")
def learn_abilities() -> None:
    """Ask every cluster which kinds of jobs it runs."""
    abilities.learn(now=clock.now())
