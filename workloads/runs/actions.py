"""What people do with runs: submit, stop, submit again, go on from checkpoints."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Q

from accounts.models import Membership, User
from accounts.roles import Permission
from audit.events import Kind
from audit.log import record
from fleet.models import Flavor
from provisioning.models import Tenancy
from web.refusals import BadInput, BadValues, Conflict, NoRight
from workloads.runs.after import live_after, refused_after
from workloads.runs.ending import end, lock_followers
from workloads.runs.enqueue import enqueue_on_commit
from workloads.runs.models import Run, RunQuerySet
from workloads.runs.planning.new_limit import NewLimit, checked_limit, new_limit_of
from workloads.runs.planning.places import place_of
from workloads.runs.planning.plan import Plan, Problem, Submission, plan
from workloads.runs.planning.resuming import (
    ChangedPlan,
    differences,
    refused_resume,
    submission_of,
    with_changes,
)
from workloads.runs.planning.words import follows_git_words
from workloads.runs.states import State
from workloads.template_desk.offered import offered, withdrawn

P = TypeVar("P", bound=Plan)
# The namespace's quota has room for 200 Jobs; sweeps and what people make themselves need some of it.
MAX_LIVE_RUNS = 150
# Of a run that is larger than what its queue has itself: what others lend may do.
LENT_HELPS = "more_than_the_queue"
NOT_OF_THE_TEAM = "People of the team start its runs."


def preview(tenancy_id: int, asked: Submission, *, by: User, key: str) -> Plan:
    """What `submit` would send with the same key, and what it would refuse. Raises NoRight, Conflict as `submit`."""
    tenancy = _tenancy(tenancy_id, by=by)
    return _with_before(_planned(tenancy, asked, by=by, key=key), tenancy, asked)


@transaction.atomic
def submit(
    tenancy_id: int,
    asked: Submission,
    *,
    by: User,
    key: str,
    now: datetime,
    again_of: Run | None = None,
) -> Run:
    """Keep a run that a worker sends at once, or when the run that it begins after has finished.

    The same submission with the same key is the same run.

    Raises NoRight for who is not of the team, Conflict where the team leaves the cluster or has too many runs, BadInput
    naming the field for whatever cannot run as it is.
    """
    tenancy = _locked(tenancy_id, by=by)
    found = _planned(tenancy, asked, by=by, key=key)
    return _keep(tenancy, asked, found, by=by, now=now, again_of=again_of)


def _keep(
    tenancy: Tenancy,
    asked: Submission,
    found: Plan,
    *,
    by: User,
    now: datetime,
    again_of: Run | None,
) -> Run:
    """Write a planned run down, unless its key has made one already; raises as `submit`."""
    # First, for what was possible then need not be so any more, and the run is there.
    earlier = Run.objects.filter(tenancy=tenancy, name=found.name).order_by("pk").last()
    if earlier is not None:
        return _same(earlier, asked)
    # Until this one is kept, the other one does not end.
    before = _before(Run.objects.locked(), tenancy, asked)
    refused = refused_after(asked.after, before)
    _refuse(tenancy, asked, [*found.problems, *refused])
    is_blocked = before is not None and not before.is_over
    run = Run.objects.create(
        team=tenancy.team,
        tenancy=tenancy,
        flavor=Flavor.objects.filter(
            cluster=tenancy.cluster_id, name=asked.flavor
        ).first(),
        requester=by,
        template=asked.template,
        template_version=found.template_version,
        title=asked.title.strip(),
        name=found.name,
        submission=asked.as_json(),
        manifests=[*found.manifests],
        gpus=found.gpus,
        usd_per_hour=found.usd_per_hour,
        limit_seconds=found.seconds,
        limit_on_cluster=found.seconds,
        created_at=now,
        requeue_at=now,
        again_of=again_of,
        after=before,
        state=State.BLOCKED if is_blocked else State.SUBMITTED,
    )
    others: dict[str, Any] = {"resumes": run.again_of_id} if run.is_resumed else {}
    if before is not None:
        others["after"] = before.pk
    record(
        Kind.RUN_SUBMITTED,
        actor=by.as_actor(),
        subject=("run", run.pk),
        team_id=run.team_id,
        name=run.name,
        template=run.template,
        cluster=tenancy.cluster.name,
        namespace=tenancy.namespace,
        gpus=run.gpus,
        **others,
    )
    if not is_blocked:
        enqueue_on_commit(run.pk)
    return run


def _before(rows: RunQuerySet, tenancy: Tenancy, asked: Submission) -> Run | None:
    """The run that has to finish first, among these; another team's is as one that does not exist."""
    if asked.after is None:
        return None
    return rows.filter(team=tenancy.team_id, pk=asked.after).first()


def _with_before(found: P, tenancy: Tenancy, asked: Submission) -> P:
    """A plan with what is wrong with the run that has to finish first, and what that is called while it goes on."""
    before = _before(Run.objects.all(), tenancy, asked)
    refused = refused_after(asked.after, before)
    goes_on = before is not None and not before.is_over
    return replace(
        found,
        problems=[*found.problems, *refused],
        after=before.title if before is not None and goes_on else "",
    )


def _same(earlier: Run, asked: Submission) -> Run:
    """The run that a key has made; raises Conflict where it was asked for with other values."""
    if earlier.submission != asked.as_json():
        raise Conflict(
            "This key came with other values before. Use a new key.",
            code="another_run",
        )
    return earlier


def _refuse(tenancy: Tenancy, asked: Submission, problems: Collection[Problem]) -> None:
    """Raise for whatever keeps a submission from being a run, as `submit` does."""
    if problems:
        raise BadValues(
            [BadInput(one.text, code=one.code, field=one.field) for one in problems]
        )
    if asked.resume_from:
        _refuse_second_writer(tenancy, asked.resume_from)
    if Run.objects.live().filter(tenancy=tenancy).count() >= MAX_LIVE_RUNS:
        raise Conflict(
            f"{MAX_LIVE_RUNS} runs of your team wait or run here. Stop some, or submit a sweep as one run.",
            code="too_many_runs",
        )


def submit_again(
    run: Run,
    *,
    by: User,
    key: str,
    now: datetime,
    changes: Mapping[str, Any] | None = None,
) -> Run:
    """Submit what a run was submitted with, or with changes, under a new name; raises as `submit`.

    It begins anew, in a folder of its own, also where that run went on from another one's checkpoints. `changes` are
    taken as `with_changes` takes them.
    """
    asked = with_changes(_anew(run), changes or {}, offered())
    return submit(run.tenancy_id, asked, by=by, key=key, now=now, again_of=run)


def preview_again(
    run_id: int, changes: Mapping[str, Any], *, by: User, key: str
) -> ChangedPlan:
    """What `submit_again` would send with the same changes and key, and what differs from the run; raises as that."""
    run = Run.objects.get(pk=run_id)
    tenancy = _tenancy(run.tenancy_id, by=by)
    found = _changed(tenancy, run, _anew(run), changes, by=by, key=key)
    return _with_before(found, tenancy, found.asked)


def _anew(run: Run) -> Submission:
    return replace(_once_more(run), resume_from="")


def _once_more(run: Run) -> Submission:
    """What a run was submitted with; it begins after another one only where that still goes on."""
    return replace(submission_of(run.current_submission), after=live_after(run))


def preview_resume(
    run_id: int, changes: Mapping[str, Any], *, by: User, key: str
) -> ChangedPlan:
    """What `resume` would send with the same changes and key, and what differs from the run; raises as `resume`."""
    run = Run.objects.get(pk=run_id)
    tenancy = _tenancy(run.tenancy_id, by=by)
    _refuse_without_checkpoints(run)
    found = _resumed(tenancy, run, changes, by=by, key=key)
    return _with_before(found, tenancy, found.asked)


@transaction.atomic
def resume(
    run_id: int,
    *,
    by: User,
    key: str,
    now: datetime,
    changes: Mapping[str, Any] | None = None,
) -> Run:
    """Submit a run once more, with its checkpoints, for the program to go on from the last one.

    `changes` are taken as `with_changes` takes them. Raises as `submit`, and Conflict where there is nothing to go on
    from or something is still written there.
    """
    run = Run.objects.get(pk=run_id)
    tenancy = _locked(run.tenancy_id, by=by)
    if kept := run.checkpoints:
        # Two that go on from the same checkpoints at once would both find that nobody writes there.
        in_folder = Q(submission__resume_from=kept, tenancy=run.tenancy_id)
        # With the one that has to finish first, as all runs that anybody locks are locked in one order.
        before = (changes or {}).get("after", run.after_id)
        them = Q(pk=run.pk) | Q(pk=before, team=run.team_id) | in_folder
        list(Run.objects.locked().filter(them).order_by("pk"))
        run.refresh_from_db()
    _refuse_without_checkpoints(run)
    found = _resumed(tenancy, run, changes or {}, by=by, key=key)
    return _keep(tenancy, found.asked, found, by=by, now=now, again_of=run)


def _refuse_without_checkpoints(run: Run) -> None:
    """Raise Conflict for a run that has written no checkpoint, or may still write one."""
    if not run.checkpoints:
        raise Conflict(
            "The run was told no place for checkpoints, so there is none to go on from. Change it and name one.",
            code="no_checkpoints",
        )
    if not run.is_over:
        raise Conflict(
            "The run has not ended and may still write checkpoints. Stop it first.",
            code="run_goes_on",
        )
    if run.started_at is None:
        raise Conflict(
            "The run never began, so it has written no checkpoint. Rerun it.",
            code="no_checkpoints",
        )


def _resumed(
    tenancy: Tenancy, run: Run, changes: Mapping[str, Any], *, by: User, key: str
) -> ChangedPlan:
    before = replace(_once_more(run), resume_from=run.checkpoints)
    found = _changed(tenancy, run, before, changes, by=by, key=key)
    refused = refused_resume(before, found.asked, found, written=run.manifests)
    return replace(found, problems=[*found.problems, *refused])


def _changed(
    tenancy: Tenancy,
    run: Run,
    before: Submission,
    changes: Mapping[str, Any],
    *,
    by: User,
    key: str,
) -> ChangedPlan:
    """What a run would be with changes, and what differs from it."""
    templates = offered()
    after = with_changes(before, changes, templates)
    found = _planned(tenancy, after, by=by, key=key)
    return ChangedPlan(
        **vars(found),
        asked=after,
        differences=differences(
            before,
            after,
            templates.get(after.template),
            written=run.manifests,
            plan=found,
        ),
    )


@transaction.atomic
def stop(run_id: int, *, by: User, now: datetime) -> Run:
    """Ask for a run's end: it has its grace to write a last checkpoint, and its GPUs are free afterwards.

    Asked again while it ends, or once it has ended so, it is the same, but that a parked run is tried again. Raises
    NoRight, and Conflict for a run that is over otherwise. What waits for another run ends at once.
    """
    run = Run.objects.locked().get(pk=run_id)
    if not may_stop(run.team_id, by):
        raise NoRight(
            "People of the team and platform leads stop runs.", code="not_of_the_team"
        )
    is_asked = run.stop_asked_at is not None
    if is_asked and run.state == State.STOPPED:
        return run
    if run.is_over:
        raise Conflict(
            f"The run is over: {State(run.state).words.lower()}.", code="run_is_over"
        )
    if is_asked and run.parked_at is None:
        return run
    is_blocked = run.state == State.BLOCKED
    if is_blocked:
        lock_followers(run, all_of_them=True)
    if not is_asked:
        run.stop_asked_at, run.stop_asked_by = now, by
        about = ("run", run.pk)
        record(
            Kind.RUN_STOPPED,
            actor=by.as_actor(),
            subject=about,
            team_id=run.team_id,
            name=run.name,
        )
    run.message = ""
    run.save(
        update_fields=["stop_asked_at", "stop_asked_by", "message", *run.retry(now=now)]
    )
    if is_blocked:
        # Nothing of it is on the cluster, and no worker ever looked at it.
        end(run.pk, State.STOPPED, now=now)
        return Run.objects.get(pk=run.pk)
    enqueue_on_commit(run.pk)
    return run


def preview_limit(run_id: int, minutes: int, *, by: User, now: datetime) -> NewLimit:
    """What `change_limit` would change; raises as that."""
    run = Run.objects.described().get(pk=run_id)
    _refuse_stranger(run, by)
    return new_limit_of(run, minutes, now=now)


@transaction.atomic
def change_limit(run_id: int, *, minutes: int, by: User, now: datetime) -> Run:
    """Have a run end at another time limit, of which a worker tells the cluster at once.

    The same again changes nothing, but that a parked run is tried again.

    Raises NoRight, and Conflict and BadInput as `checked_limit`.
    """
    run = Run.objects.locked().get(pk=run_id)
    _refuse_stranger(run, by)
    before, seconds = run.limit_seconds, checked_limit(run, minutes, now=now)
    if seconds == before and run.parked_at is None:
        return run
    run.message = ""
    fields = ["message", *run.retry(now=now)]
    if seconds != before:
        run.limit_seconds, run.limit_changed_at = seconds, now
        run.limit_changed_by = by
        fields += ["limit_seconds", "limit_changed_at", "limit_changed_by"]
    run.save(update_fields=fields)
    if seconds != before:
        record(
            Kind.RUN_LIMIT_CHANGED,
            actor=by.as_actor(),
            subject=("run", run.pk),
            team_id=run.team_id,
            name=run.name,
            seconds=seconds,
            before=before,
        )
    enqueue_on_commit(run.pk)
    return run


def _refuse_stranger(run: Run, by: User) -> None:
    if not may_stop(run.team_id, by):
        raise NoRight(
            "People of the team and platform leads change a run's time limit.",
            code="not_of_the_team",
        )


def may_stop(team_id: int, by: User) -> bool:
    """Whether this person may end a team's work, now or by a limit, and read its logs: its people, platform leads."""
    return team_id in by.team_ids or by.may(Permission.GIVE_BACK_FOR_TEAMS)


def _planned(tenancy: Tenancy, asked: Submission, *, by: User, key: str) -> Plan:
    """The plan of a submission; what others lend is looked at only where the team's own GPUs or CPUs are too few."""
    key = f"{by.pk}:{key}"
    place = place_of(tenancy, by=by, with_lent=False)
    found = plan(asked, place, key=key)
    if asked.template not in place.templates and (gone := withdrawn(asked.template)):
        return replace(
            found,
            problems=[Problem(field="template", text=gone, code="template_withdrawn")],
        )
    if not any(one.lacks or one.code == LENT_HELPS for one in found.problems):
        return found
    return plan(asked, place_of(tenancy, by=by), key=key)


def _locked(tenancy_id: int, *, by: User) -> Tenancy:
    """A namespace, locked: one submission is looked at after the other, so a key is one run and none is left uncounted.

    Raises as `_tenancy`, also where this person was taken out of the team while it waited.
    """
    Tenancy.objects.locked().order_by().get(pk=tenancy_id)
    tenancy = _tenancy(tenancy_id, by=by)
    if not Membership.objects.filter(team=tenancy.team_id, user=by).exists():
        raise NoRight(NOT_OF_THE_TEAM, code="not_of_the_team")
    return tenancy


def _tenancy(tenancy_id: int, *, by: User) -> Tenancy:
    rows = Tenancy.objects.select_related("team", "project", "cluster__ability")
    tenancy = rows.get(pk=tenancy_id)
    if tenancy.team_id not in by.team_ids:
        raise NoRight(NOT_OF_THE_TEAM, code="not_of_the_team")
    if not tenancy.is_here:
        raise Conflict(
            f"The team's namespace {tenancy.namespace} leaves {tenancy.cluster.title}: nothing new starts in it.",
            code="is_leaving",
        )
    if not tenancy.cluster.is_written_to:
        raise Conflict(follows_git_words(tenancy.cluster.title), code="follows_git")
    if not tenancy.observed_generation:
        raise Conflict(
            "Your namespace is not there yet. Wait until it is set up.",
            code="not_set_up",
        )
    return tenancy


def _refuse_second_writer(tenancy: Tenancy, folder: str) -> None:
    other = (
        Run.objects.live()
        .filter(tenancy=tenancy, submission__resume_from=folder)
        .first()
    )
    if other is not None:
        raise Conflict(
            f"Run {other.pk} goes on from these checkpoints already, and writes its own beside them. Stop it first.",
            code="run_goes_on",
        )
