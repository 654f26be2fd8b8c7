"""What changes about the policy: drafted, changed, taken over, thrown away, and put in force by a second person."""

from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.urls import reverse

from accounts.directory import freshness
from accounts.models import User
from accounts.people import holding
from accounts.roles import Permission
from approvals.judging.inputs import policy_in_force
from approvals.policy_desk import simulator
from approvals.policy_desk.parsing import Said, policy_said
from audit.events import Kind
from audit.log import record
from notices.actions import take_back, tell, tell_with_channels
from notices.kinds import NoticeKind
from notices.message import Message
from policy.differences import Difference, differences
from policy.document import Policy, Thresholds, policy_from, to_json
from policy.models import PolicyCancellation, PolicyDraft, PolicyVersion
from ui.amounts import moment
from web.documents import UNSTORABLE, DocumentRefused
from web.refusals import BadInput, Conflict, NoRight, Stale

LONGEST_WHY = 200
FURTHEST = timedelta(days=90)
# Who cancels a policy nearer to its moment could leave requests judged by it that nobody expects any more.
TOO_LATE = timedelta(minutes=1)
MOST_DRAFTS = 50
REPLAYED_DAYS = 30


@transaction.atomic
def draft(
    *,
    by: User,
    now: datetime,
    base: int | None = None,
    said: Said | None = None,
    why: str = "",
) -> PolicyDraft:
    """Begin a draft, of a version's values or of other ones; `base` is a version's number, the newest unless told.

    With the values of one that is not in force and is not to come, it is a draft on the one that is in force.
    Raises NoRight, NotAPolicy, BadInput for a version that is not there, Conflict when there are too many drafts.
    """
    _check_writer(by)
    versions = PolicyVersion.objects.all()
    start = _newest() if base is None else versions.filter(number=base).first()
    if start is None:
        raise BadInput(
            "There is no policy of this number.", code="no_such_policy", field="base"
        )
    if PolicyDraft.objects.filter(closed_at=None).count() >= MOST_DRAFTS:
        raise Conflict(
            "Too many drafts are open. Throw old ones away first.", code="too_many"
        )
    policy = start.policy if said is None else policy_said(said)
    if said is None:
        current, _ = policy_in_force(now)
        # Of another one the values are proposed; as the base, it would be taken over, and nothing of it would stay.
        start = start if start in (_newest(), current) else current
    made = PolicyDraft.objects.create(
        base=start,
        document=to_json(policy),
        why=_why(why),
        author=by,
        created_at=now,
        updated_at=now,
    )
    _record(Kind.POLICY_DRAFTED, made, by, differences(start.policy, policy))
    return made


@transaction.atomic
def change(
    draft_id: int,
    *,
    by: User,
    expected_version: int,
    now: datetime,
    said: Said | None = None,
    why: str | None = None,
) -> PolicyDraft:
    """Write other values or another reason into a draft; only its author does, so that two people stay two.

    Raises NoRight, Conflict once it is closed, Stale, NotAPolicy.
    """
    found = _own(draft_id, by=by, expected_version=expected_version)
    policy = found.policy if said is None else policy_said(said)
    before = found.policy
    _save(
        found,
        now=now,
        document=to_json(policy),
        why=found.why if why is None else _why(why),
        handed_in_at=None,
    )
    _record(Kind.POLICY_DRAFTED, found, by, differences(before, policy))
    return found


@transaction.atomic
def take_over(
    draft_id: int, *, by: User, expected_version: int, now: datetime
) -> PolicyDraft:
    """Put a draft on the newest version: what the draft changed stays, all else becomes the newest's.

    Raises NoRight, Stale, and Conflict `cannot_take_over` when both together would contradict each other.
    """
    found = _own(draft_id, by=by, expected_version=expected_version)
    newest = _newest()
    if newest.pk == found.base_id:
        raise Conflict(f"The draft is on {newest} already.", code="nothing_changes")
    merged = merge(found.base.policy, found.policy, newest.policy)
    try:
        policy_from(to_json(merged))
    except DocumentRefused as refused:
        raise Conflict(
            f"What the draft changes does not fit {newest}: {refused}. Start a new draft from it.",
            code="cannot_take_over",
        ) from refused
    _save(found, now=now, document=to_json(merged), base=newest, handed_in_at=None)
    _record(Kind.POLICY_DRAFTED, found, by, differences(newest.policy, merged))
    return found


@transaction.atomic
def hand_in(
    draft_id: int, *, by: User, expected_version: int, now: datetime
) -> PolicyDraft:
    """Ask everybody else who may to put one's own draft in force; they are told.

    Raises NoRight, Stale, Conflict once it is closed or handed in, or where it could not come into force.
    """
    found = _own(draft_id, by=by, expected_version=expected_version)
    if found.handed_in_at is not None:
        raise Conflict(
            "Others are asked already to put it in force.", code="handed_in_already"
        )
    changes = _check_changes(found, _newest(), now=now)
    _save(found, now=now, handed_in_at=now)
    _tell_waits(found, changes, now=now)
    _record(Kind.POLICY_HANDED_IN, found, by, changes)
    return found


@transaction.atomic
def discard(draft_id: int, *, by: User, now: datetime) -> PolicyDraft:
    """Throw a draft away, which stays on record; raises NoRight, Conflict once it is closed."""
    _check_writer(by)
    found = _open(draft_id)
    _save(found, now=now, closed_at=now)
    _record(Kind.POLICY_DISCARDED, found, by, ())
    return found


def activate(
    draft_id: int,
    *,
    by: User,
    expected_version: int,
    now: datetime,
    active_from: datetime | None = None,
    everything_automatic: bool = False,
) -> PolicyVersion:
    """Put a draft in force, now or from a later moment, as the next number; never by its author.

    Raises NoRight `same_person`, Stale, Conflict `base_is_old`, BadInput. A policy with no bounds, or on which every
    ask of the last 30 days would be automatic, needs `everything_automatic`, which the audit log keeps.
    """
    _check_activator(by)
    seen = PolicyDraft.objects.get(pk=draft_id)
    _check_version(seen, expected_version)
    # Replayed before the transaction, which keeps locks for as short as it can; the version says it is the same text.
    warned = warnings_of(seen.policy, by=by, now=now)
    return _activate(
        draft_id,
        by=by,
        expected_version=expected_version,
        now=now,
        active_from=active_from or now,
        warned=warned,
        ticked=everything_automatic,
    )


@transaction.atomic
def cancel(number: int, *, by: User, now: datetime, why: str) -> PolicyVersion:
    """Have a policy that is to come later not come; what is in force stays, or an earlier one comes that it replaced.

    One person may: it leaves in force what two people have put there. Raises NoRight, BadInput without a reason,
    Conflict for one that is in force or never comes anyway.
    """
    _check_activator(by)
    freshness.check(by, now=now)
    _newest(lock=True)
    found = PolicyVersion.objects.get(number=number)
    if refusal := why_not_cancelled(found, now=now):
        raise Conflict(refusal, code="not_to_come")
    reason = _why(why)
    if not reason:
        raise BadInput(
            "Say why it is not to come: everybody who was told of it reads that.",
            code="reason_needed",
            field="reason",
        )
    PolicyCancellation.objects.create(version=found, by=by, at=now, why=reason)
    _tell_cancelled(found, by=by, why=reason, now=now)
    record(
        Kind.POLICY_CANCELLED,
        actor=by.as_actor(),
        subject=("policy", found.number),
        why=reason,
        active_from=found.active_from,
    )
    return found


def why_not_cancelled(version: PolicyVersion, *, now: datetime) -> str:
    """Why there is nothing to cancel about a version, as a sentence; empty where there is."""
    if hasattr(version, "cancellation"):
        return f"{version} was cancelled already."
    if version.active_from <= now + TOO_LATE:
        return f"{version} is in force, or was. Begin a draft from the one before it, and put that in force."
    if version.never_comes:
        return f"{version} never comes into force: another one came instead of it."
    return ""


def next_number() -> int:
    """The number of the version that is made next; none is given twice, also after one was cancelled."""
    return PolicyVersion.objects.latest("number").number + 1


def warnings_of(policy: Policy, *, by: User, now: datetime) -> tuple[str, ...]:
    """Why putting this policy in force needs a tick, with the simulator's numbers; empty when it does not."""
    past = simulator.simulate(policy, days=REPLAYED_DAYS, now=now, who=by).past
    return simulator.warnings(policy, past)


def merge(base: Policy, mine: Policy, newest: Policy) -> Policy:
    """The newest policy with what `mine` changed of `base`: threshold by threshold, else part by part."""
    changed = {
        each.name: getattr(mine.thresholds, each.name)
        for each in fields(Thresholds)
        if getattr(mine.thresholds, each.name) != getattr(base.thresholds, each.name)
    }
    parts = {
        name: getattr(mine, name)
        for name in ("overrides", "routes", "lapse_days")
        if getattr(mine, name) != getattr(base, name)
    }
    return replace(newest, thresholds=replace(newest.thresholds, **changed), **parts)


@transaction.atomic
def _activate(
    draft_id: int,
    *,
    by: User,
    expected_version: int,
    now: datetime,
    active_from: datetime,
    warned: tuple[str, ...],
    ticked: bool,
) -> PolicyVersion:
    found = _open(draft_id)
    _check_version(found, expected_version)
    if found.author_id == by.pk:
        raise NoRight(
            "Two people put a policy in force: somebody else activates what you wrote.",
            code="same_person",
        )
    freshness.check(by, now=now)
    newest = _newest(lock=True)
    changes = _check_activation(
        found, newest, now=now, active_from=active_from, warned=warned, ticked=ticked
    )
    _check_order(found, newest, now=now, active_from=active_from)
    version = PolicyVersion.objects.create(
        number=next_number(),
        document=found.document,
        active_from=active_from,
        why=found.why,
        proposed_by=found.author,
        activated_by=by,
    )
    _save(found, now=now, closed_at=now, became=version)
    _tell(version, changes, now=now)
    record(
        Kind.POLICY_ACTIVATED if active_from <= now else Kind.POLICY_SCHEDULED,
        actor=by.as_actor(),
        subject=("policy", version.number),
        proposed_by=found.author.name,
        why=found.why,
        changes=[change.line for change in changes],
        active_from=active_from,
        everything_automatic=list(warned) or None,
        instead_of=[each.number for each in version.instead_of] or None,
    )
    return version


def _check_activation(
    found: PolicyDraft,
    newest: PolicyVersion,
    *,
    now: datetime,
    active_from: datetime,
    warned: tuple[str, ...],
    ticked: bool,
) -> tuple[Difference, ...]:
    """What the draft changes; raises Refused when it cannot come into force so."""
    changes = _check_changes(found, newest, now=now)
    if active_from < now:
        raise BadInput(
            "It comes into force now or later.", code="in_the_past", field="active_from"
        )
    if active_from - now > FURTHEST:
        raise BadInput(
            f"It comes into force within {FURTHEST.days} days.",
            code="too_far_ahead",
            field="active_from",
        )
    if warned and not ticked:
        raise BadInput(
            f"{' '.join(warned)} Tick that this is meant.",
            code="everything_automatic",
            field="everything_automatic",
        )
    return changes


def _check_changes(
    found: PolicyDraft, newest: PolicyVersion, *, now: datetime
) -> tuple[Difference, ...]:
    """What the draft changes; raises Refused while its author has something to do before it can come into force."""
    current, _ = policy_in_force(now)
    if hasattr(found.base, "cancellation"):
        raise Conflict(
            f"{found.base}, on which it was begun, was cancelled. Its author takes the draft over onto {newest} first.",
            code="base_is_old",
        )
    if found.base_id not in (newest.pk, current.pk):
        raise Conflict(
            f"{newest} was put in force after this draft was begun on {found.base}. Its author takes it over onto the "
            "newest first.",
            code="base_is_old",
        )
    changes = differences(found.base.policy, found.policy)
    if not changes:
        raise Conflict(
            f"The draft says the same as {found.base}.", code="nothing_changes"
        )
    if not found.why:
        raise BadInput(
            "Its author says first why the policy changes.",
            code="reason_needed",
            field="reason",
        )
    return changes


def _check_order(
    found: PolicyDraft, newest: PolicyVersion, *, now: datetime, active_from: datetime
) -> None:
    """Refuse a moment at which something else than the draft's base would be in force: what changes was not seen.

    A draft on one that comes later comes with it or after it; one on the policy in force comes before, instead of it.
    """
    if newest.active_from <= now:
        return
    if found.base_id == newest.pk and active_from < newest.active_from:
        raise BadInput(
            f"The draft is on {newest}, which comes into force {moment(newest.active_from, now)}: with it or later. To "
            "change what is in force now, begin a draft from that.",
            code="before_its_base",
            field="active_from",
        )
    standing = PolicyVersion.objects.standing()
    first = standing.filter(active_from__gt=now).earliest("active_from")
    if found.base_id != newest.pk and active_from >= first.active_from:
        raise BadInput(
            f"{first} comes into force {moment(first.active_from, now)}. What is to come instead of it comes before.",
            code="after_another",
            field="active_from",
        )


def _tell_waits(
    found: PolicyDraft, changes: tuple[Difference, ...], *, now: datetime
) -> None:
    """Tell everybody who may put it in force but its author."""
    others = holding(Permission.ACTIVATE_POLICY).exclude(pk=found.author_id)
    tell(
        NoticeKind.POLICY_WAITS,
        to=others,
        subject=("policy_draft", found.pk),
        link=reverse("policy-draft", args=[found.pk]),
        message=Message(
            title=f"{found.author.name} asks you to put a policy in force",
            sentence=found.why,
            facts=_facts(changes),
            action="Look at the draft",
        ),
        now=now,
    )


def _facts(changes: tuple[Difference, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (each.place, f"{each.before or 'nothing'} → {each.after or 'nothing'}")
        for each in changes
    )


def _tell(
    version: PolicyVersion, changes: tuple[Difference, ...], *, now: datetime
) -> None:
    """Tell everybody who could have put it in force."""
    assert version.proposed_by and version.activated_by  # noqa: S101, PT018 - every version after the first
    since = (
        "is in force"
        if version.active_from <= now
        else f"comes into force {moment(version.active_from, now)}"
    )
    message = Message(
        title=f"{version} {since}",
        sentence=f"{version.proposed_by.name} wrote it, {version.activated_by.name} activated it: {version.why}"
        + "".join(f" {each} never comes into force." for each in version.instead_of),
        facts=_facts(changes),
        action="See what changed",
    )
    link, about = (
        reverse("policy-version", args=[version.number]),
        ("policy", version.number),
    )
    _tell_everybody(about, link, message, now=now)


def _tell_cancelled(
    version: PolicyVersion, *, by: User, why: str, now: datetime
) -> None:
    """Tell everybody who was told that it comes."""
    message = Message(
        title=f"{version} does not come into force",
        sentence=f"{by.name} cancelled it: {why}",
        facts=(("It was to come", moment(version.active_from, now)),),
        action="See what it said",
    )
    link = reverse("policy-version", args=[version.number])
    _tell_everybody(("policy", version.number), link, message, now=now)


def _tell_everybody(
    about: tuple[str, int], link: str, message: Message, *, now: datetime
) -> None:
    kind = NoticeKind.POLICY_ACTIVATED
    people = holding(Permission.ACTIVATE_POLICY)
    tell_with_channels(
        kind, to=people, subject=about, link=link, message=message, now=now
    )


def _check_activator(by: User) -> None:
    if not by.may(Permission.ACTIVATE_POLICY):
        raise NoRight(
            "Platform leads and engineering leadership put a policy in force.",
            code="not_an_activator",
        )


def _newest(*, lock: bool = False) -> PolicyVersion:
    """The newest version that stands; with `lock`, version 1 puts in line who changes which policy comes next."""
    if lock:
        PolicyVersion.objects.select_for_update(no_key=True).get(number=1)
    return PolicyVersion.objects.standing().order_by("-number")[0]


def _check_writer(by: User) -> None:
    if not by.may(Permission.MANAGE_POLICY):
        raise NoRight(
            "Platform leads write drafts of the policy.", code="not_a_platform_lead"
        )


def _open(draft_id: int) -> PolicyDraft:
    rows = PolicyDraft.objects.select_for_update(
        of=("self",), no_key=True
    ).select_related("base", "author")
    found = rows.get(pk=draft_id)
    if found.closed_at is not None:
        raise Conflict("The draft was activated or thrown away.", code="draft_closed")
    return found


def _own(draft_id: int, *, by: User, expected_version: int) -> PolicyDraft:
    _check_writer(by)
    found = _open(draft_id)
    if found.author_id != by.pk:
        raise NoRight(
            f"{found.author.name} wrote this draft and changes it. Begin one of your own from it.",
            code="not_the_author",
        )
    _check_version(found, expected_version)
    return found


def _check_version(found: PolicyDraft, expected: int) -> None:
    if found.version != expected:
        raise Stale(
            "The draft has changed since you looked at it. Look at it again.",
            code="stale",
        )


def _why(text: str) -> str:
    tidy = " ".join(text.split())
    if len(tidy) > LONGEST_WHY or UNSTORABLE.search(tidy):
        raise BadInput(
            f"Say it in at most {LONGEST_WHY} characters.",
            code="too_many_characters",
            field="reason",
        )
    return tidy


def _save(found: PolicyDraft, *, now: datetime, **values: Any) -> None:
    for name, value in {
        **values,
        "version": found.version + 1,
        "updated_at": now,
    }.items():
        setattr(found, name, value)
    found.save(update_fields=[*values, "version", "updated_at"])
    # Whoever was not told yet that it waits as it was, is not told so any more.
    take_back([NoticeKind.POLICY_WAITS], subject=("policy_draft", found.pk))


def _record(
    kind: Kind, found: PolicyDraft, by: User, changes: tuple[Difference, ...]
) -> None:
    record(
        kind,
        actor=by.as_actor(),
        subject=("policy_draft", found.pk),
        base=found.base.number,
        why=found.why or None,
        changes=[change.line for change in changes] or None,
    )
