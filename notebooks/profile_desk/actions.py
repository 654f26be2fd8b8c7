"""What platform leads do with profiles: write a version, publish it, deprecate a profile, retire it, take a file in."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from accounts.models import User
from audit.events import Kind
from audit.log import record
from notebooks.models import Profile, ProfileVersion
from notebooks.profile_desk.kept import fleet, require_lead
from notebooks.profiles.document import Document, document_from, read, write
from notebooks.profiles.kubespawner import read_list
from notebooks.profiles.publishing import problems_of
from notebooks.profiles.states import LEGAL, State
from web.documents import UNSTORABLE, DocumentRefused
from web.refusals import BadDocument, BadInput, Conflict

MAX_REASON = 200
Written = str | Mapping[str, Any]


class NotAProfile(BadDocument):
    """A document that is no profile, or none that people can choose."""

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__(problems, code="not_a_profile")


@transaction.atomic
def save(
    written: Written,
    *,
    by: User,
    now: datetime,
    slug: str = "",
    seen: int | None = None,
    reason: str = "",
) -> ProfileVersion:
    """Keep a profile as a document says it, as a draft version that nobody gets before it is published.

    What says the same as the newest version makes none. `slug` is whose version it has to be, `seen` the newest number
    that the author knew, 0 for none. Raises NoRight, NotAProfile naming every place that is wrong, Conflict where
    somebody else wrote another version meanwhile, or the profile is retired.
    """
    require_lead(by)
    document = document_of(written)
    if slug and document.slug != slug:
        raise NotAProfile(
            [("slug", f"This is the profile {slug}; write a new one for another name.")]
        )
    return _save(document, by=by, now=now, seen=seen, reason=reason)


@transaction.atomic
def take_in(
    text: str, *, by: User, now: datetime, reason: str = ""
) -> list[ProfileVersion]:
    """Keep every profile of a KubeSpawner `profile_list` as a draft version, all or none. Raises as `save`."""
    require_lead(by)
    try:
        documents = read_list(text)
    except DocumentRefused as refused:
        raise NotAProfile(refused.problems) from refused
    return [_save(one, by=by, now=now, seen=None, reason=reason) for one in documents]


@transaction.atomic
def publish(slug: str, *, by: User, seen: int | None = None) -> Profile:
    """Let people choose a profile in its newest version, also one that was deprecated; servers that run stay.

    `seen` is the number that was looked at. Raises NoRight, BadInput for no such profile, NotAProfile naming what it
    lacks, Conflict for a retired one and for a newer version than that.
    """
    profile, newest = _locked(slug, by=by, seen=seen)
    if profile.state == State.PUBLISHED and profile.published == newest.number:
        return profile
    _require(profile, State.PUBLISHED)
    if problems := problems_of(document_of(newest.text), fleet()):
        raise NotAProfile(problems)
    profile.published, profile.reason, profile.successor = newest.number, "", None
    _move(profile, State.PUBLISHED)
    record(
        Kind.PROFILE_PUBLISHED,
        actor=by.as_actor(),
        subject=("profile", slug),
        version=newest.number,
    )
    return profile


@transaction.atomic
def deprecate(slug: str, *, by: User, reason: str, successor: str = "") -> Profile:
    """Advise people against a profile, with the reason and what to choose instead; it can still be chosen.

    Raises NoRight, BadInput for no such profile, no reason, or a successor that nobody can choose, Conflict where it is
    not published.
    """
    profile, _ = _locked(slug, by=by, successor=successor)
    _require(profile, State.DEPRECATED)
    _say_why(profile, reason, successor)
    _move(profile, State.DEPRECATED)
    _record_end(Kind.PROFILE_DEPRECATED, profile, by)
    return profile


@transaction.atomic
def retire(slug: str, *, by: User, reason: str, successor: str = "") -> Profile:
    """Take a draft or a deprecated profile away for good; servers that run stay, and its name is not used again.

    Raises as `deprecate`; Conflict is for one that is published.
    """
    profile, _ = _locked(slug, by=by, successor=successor)
    if profile.state == State.RETIRED:
        return profile
    _require(profile, State.RETIRED)
    _say_why(profile, reason, successor)
    _move(profile, State.RETIRED)
    _record_end(Kind.PROFILE_RETIRED, profile, by)
    return profile


def document_of(written: Written) -> Document:
    """The document of a YAML text or a JSON value; raises NotAProfile naming every place that is wrong."""
    try:
        return read(written) if isinstance(written, str) else document_from(written)
    except DocumentRefused as refused:
        raise NotAProfile(refused.problems) from refused


def _save(
    document: Document, *, by: User, now: datetime, seen: int | None, reason: str
) -> ProfileVersion:
    _check_sentence(reason)
    profile, _ = Profile.objects.get_or_create(slug=document.slug)
    profile = Profile.objects.select_for_update(no_key=True).get(pk=profile.pk)
    if profile.state == State.RETIRED:
        raise Conflict(
            f"The profile {profile.slug} is retired. Choose another slug for a new one.",
            code="profile_retired",
        )
    newest = profile.versions.first()
    text = write(document)
    if newest is not None and newest.text == text:
        return newest
    number = newest.number if newest is not None else 0
    _check_seen(number, seen)
    try:
        with transaction.atomic():
            version = profile.versions.create(
                number=number + 1,
                title=document.title,
                text=text,
                why=reason.strip(),
                by=by,
                at=now,
            )
    except IntegrityError as error:
        # Where the database locks no rows, two authors meet here.
        raise _meanwhile(number + 1) from error
    record(
        Kind.PROFILE_SAVED,
        actor=by.as_actor(),
        subject=("profile", profile.slug),
        version=version.number,
        reason=reason,
    )
    return version


def _locked(
    slug: str, *, by: User, seen: int | None = None, successor: str = ""
) -> tuple[Profile, ProfileVersion]:
    """A profile with its newest version; both it and its successor are locked, so that that one stays offered."""
    require_lead(by)
    both = Profile.objects.filter(slug__in={slug, successor}).order_by("pk")
    locked = {one.slug: one for one in both.select_for_update(no_key=True)}
    profile = locked.get(slug)
    newest = profile.versions.first() if profile is not None else None
    if profile is None or newest is None:
        raise BadInput(
            "There is no such profile.", code="no_such_profile", field="slug"
        )
    _check_seen(newest.number, seen)
    return profile, newest


def _require(profile: Profile, following: State) -> None:
    current = State(profile.state)
    if following is current or following in LEGAL[current]:
        return
    ways = {
        State.PUBLISHED: "A retired profile never comes back: begin a new one from it.",
        State.DEPRECATED: f"The profile is {current.value}. Only a published one is deprecated.",
        State.RETIRED: "Deprecate it first, so that people who use it read why.",
    }
    raise Conflict(ways[following], code="not_in_this_state")


def _move(profile: Profile, following: State) -> None:
    profile.state = following
    profile.save(update_fields=["state", "published", "reason", "successor"])


def _say_why(profile: Profile, reason: str, successor: str) -> None:
    _check_sentence(reason)
    if not reason.strip():
        raise BadInput("Say why, for who uses it.", code="reason", field="reason")
    found = (
        Profile.objects.offered().filter(slug=successor).exclude(pk=profile.pk).first()
    )
    if successor and found is None:
        raise BadInput(
            f"People cannot choose “{successor[:40]}” instead: name a published profile.",
            code="no_such_profile",
            field="successor",
        )
    profile.reason, profile.successor = reason.strip(), found


def _record_end(kind: Kind, profile: Profile, by: User) -> None:
    record(
        kind,
        actor=by.as_actor(),
        subject=("profile", profile.slug),
        reason=profile.reason,
        successor=profile.successor.slug if profile.successor else "",
    )


def _check_sentence(text: str) -> None:
    if UNSTORABLE.search(text) or len(text) > MAX_REASON:
        raise BadInput(
            f"Write one sentence of at most {MAX_REASON} characters.",
            code="reason",
            field="reason",
        )


def _check_seen(number: int, seen: int | None) -> None:
    if seen is not None and seen != number:
        raise _meanwhile(number)


def _meanwhile(number: int) -> Conflict:
    return Conflict(
        f"Somebody wrote version {number} of this profile meanwhile. Look at it, and save yours again.",
        code="profile_changed",
    )
