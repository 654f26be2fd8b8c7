"""The next step of an explanation as a link of a page."""

from collections.abc import Collection, Iterable
from datetime import datetime
from urllib.parse import urlencode

from django.urls import reverse

from approvals.request_form.quick_ends import quick_end
from approvals.requests.links import ask_link
from fleet.models import Flavor
from fleet.names import flavor_key
from provisioning.models import Tenancy
from ui.parts import Link, Wait
from workloads.explanations import Action, Explanation, Step
from workloads.runs.models import Run

# What a step may say of a run, under the names of the form's inputs.
FILLED_IN = ("flavor", "gpus", "nodes")


def link_of(
    why: Explanation,
    tenancy: Tenancy,
    *,
    run: int | None,
    tenancies: Iterable[Tenancy],
    flavors: Collection[str],
    now: datetime,
) -> Link | None:
    """The link of the next step for work in a tenancy; None where no page takes it.

    `run` is the number of the run that it is. `tenancies` come with team and cluster; `flavors` are the keys of those
    that can be asked for: "training-eastus/a100".
    """
    step = why.step
    if step is None:
        return None
    href = ""
    if step.action in (Action.REQUEST_GPUS, Action.RENEW):
        flavor = flavor_key(tenancy.cluster.name, str(step.data.get("flavor")))
        href = (
            ask_for(flavor, int(step.data["gpus"]), tenancy, now)
            if flavor in flavors
            else ""
        )
    elif step.action is Action.OPEN_REQUEST:
        href = reverse("request", args=[step.data["request"]])
    elif step.action is Action.OPEN_RUN:
        href = reverse("run", args=[step.data["run"]])
    elif run is not None:
        href = _of_run(step, run, tenancy, tenancies)
    return {"label": step.label, "href": href} if href else None


def wait_of(
    why: Explanation,
    tenancy: Tenancy,
    *,
    run: int | None,
    flavor: Flavor | None,
    now: datetime,
) -> Wait:
    """The lines about work of a tenancy that waits, with the link of its next step; `flavor` is what it waits for."""
    flavors = [flavor.key] if flavor is not None else []
    return {
        "kind": why.outlook.value,
        "what": why.what,
        "since": why.since,
        "place": why.line,
        "expected": why.when,
        "advice": why.do,
        "detail": why.detail,
        "action": link_of(
            why, tenancy, run=run, tenancies=[tenancy], flavors=flavors, now=now
        ),
    }


def _of_run(
    step: Step, run: int, tenancy: Tenancy, tenancies: Iterable[Tenancy]
) -> str:
    """Where a step leads that needs the form or the log of a run."""
    if step.action is Action.SHOW_LOGS:
        return f"{reverse('run', args=[run])}#logs"
    if step.action in (Action.CHANGE_RUN, Action.RUN_AGAIN):
        return again_link(tenancy.team.slug, run, step)
    if step.action is Action.USE_FLAVOR:
        target = (step.data.get("cluster"), step.data.get("namespace"))
        place = next(
            (one for one in tenancies if (one.cluster.name, one.namespace) == target),
            None,
        )
        return (
            again_link(tenancy.team.slug, run, step, place=place)
            if place is not None
            else ""
        )
    return ""


def ask_for(flavor: str, count: int, tenancy: Tenancy, now: datetime) -> str:
    """The form for so many GPUs more of a flavor, named by its key, for a week, filled in."""
    return ask_link(
        "gpus",
        team=tenancy.team.slug,
        spec={"flavor": flavor, "gpus": count},
        until=quick_end("7", now),
        namespace=tenancy.namespace,
    )


def again_link(
    team: str,
    run: int,
    step: Step | None = None,
    *,
    place: Tenancy | None = None,
    flavor: str = "",
) -> str:
    """The form filled in with what a run was submitted with, with what a step changes, and with another flavor."""
    changed = {
        name: str(step.data[name])
        for name in FILLED_IN
        if step is not None and name in step.data
    }
    if step is not None and step.action is Action.USE_FLAVOR:
        # All of its GPUs together: what one pod asks for stays.
        changed.pop("gpus", None)
    query = {
        "again": str(run),
        **({"place": str(place.pk)} if place else {}),
        **({"flavor": flavor} if flavor else {}),
        **changed,
    }
    return f"{reverse('run-new', args=[team])}?{urlencode(query)}"


def next_link(run: Run) -> str:
    """The templates, for a run that begins when this one has finished."""
    query = urlencode({"place": run.tenancy_id, "after": run.pk})
    return f"{reverse('run-new', args=[run.team.slug])}?{query}"


def resume_link(team: str, run: int) -> str:
    """The form filled in with what a run was submitted with, to go on from its checkpoints with other values."""
    return f"{reverse('run-new', args=[team])}?{urlencode({'resume': str(run)})}"
