"""What was said and changed about a request, for its pages: one conversation, and before → after of each change."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise
from typing import TypedDict

from accounts.models import User
from approvals.conversation.actions import said_in
from approvals.models import Comment, Decision, Evaluation, Request, Revision
from approvals.requests.presenting import past_wish, person
from approvals.revisions import Change, changes, in_words
from catalogue.offering import in_sentence
from fleet.models import Flavor
from ui.amounts import ago
from ui.parts import BeforeAfter, Entry, Person

SAID = (Decision.Verdict.ASK, Decision.Verdict.ANSWER)


class Remark(TypedDict):
    """Something that was said, and whether it was asked, answered or said."""

    who: Person
    at: datetime
    text: str
    did: str


class Version(TypedDict):
    """What was asked for in one version, and what differs from the version before."""

    content_version: int
    at: datetime
    by: User
    name: str
    changed: Sequence[str]


class Edited(TypedDict):
    """What is different from the version that somebody saw."""

    words: str
    rows: Sequence[BeforeAfter]


def revisions_of(request: Request) -> list[Revision]:
    """Every version of what was asked, oldest first; nothing, and no query, while there is one."""
    return (
        list(request.revisions.select_related("by"))
        if request.content_version > 1
        else []
    )


def lines(request: Request, decisions: Iterable[Decision]) -> list[Remark]:
    """Questions, answers and comments on a request, oldest first; no query where it is known that there are none."""
    some = getattr(request, "has_comments", True)
    comments: list[Comment] = (
        list(request.comments.select_related("by")) if some else []
    )
    found = [
        (d.at, d.by, d.reason, d.get_verdict_display())
        for d in decisions
        if d.verdict in SAID
    ]
    found += [(comment.at, comment.by, comment.text, "said") for comment in comments]
    return [
        {
            "who": person(by) if by else {"name": "The policy"},
            "at": at,
            "text": text,
            "did": did,
        }
        for at, by, text, did in sorted(found, key=lambda each: each[0])
    ]


def edits(
    request: Request,
    evaluation: Evaluation,
    revisions: Sequence[Revision],
    decisions: Iterable[Decision],
) -> list[Entry]:
    """How the ask came to be what it is, for the timeline; nothing while it is as it was sent."""
    if len(revisions) < 2:
        return []
    first, voted = revisions[0], _voted(decisions)
    asked = past_wish(request, in_sentence(name_in(request, first)))
    parts = [_past(asked, first, "")]
    for before, after in pairwise(revisions):
        said = "; ".join(change.words for change in between(request, before, after))
        why = "What was decided before is void." if before.number in voted else ""
        if after is revisions[-1]:
            why += f" {evaluation.policy} answered: {evaluation.answer['sentence']}"
        parts.append(_past(f"Changed: {said}", after, why.strip()))
    return parts


def _voted(decisions: Iterable[Decision]) -> set[int]:
    """The versions that somebody voted on."""
    return {d.content_version for d in decisions if d.verdict in Decision.VOTES}


def since_seen(
    request: Request,
    viewer: User,
    decisions: Sequence[Decision],
    revisions: Sequence[Revision],
    *,
    now: datetime,
) -> Edited | None:
    """What is different from the version that somebody decided or asked about last, else from the one before."""
    if len(revisions) < 2:
        return None
    spoke = [
        d.content_version
        for d in decisions
        if d.by_id == viewer.pk and d.content_version < request.content_version
    ]
    seen = max(spoke, default=request.content_version - 1)
    before = next(revision for revision in revisions if revision.number == seen)
    after = revisions[-1]
    mine = ", after you spoke" if spoke else ""
    is_void = any(number < after.number for number in _voted(decisions))
    void = "; earlier votes are void" if is_void else ""
    return {
        "words": f"{after.by.name} changed it {ago(after.at, now)}{mine}{void}.",
        "rows": [
            {"label": change.label, "before": change.before, "after": change.after}
            for change in between(request, before, after)
        ],
    }


def edited(request: Request, *, now: datetime) -> list[tuple[datetime, str]]:
    """When it was changed, by whom and what, in words."""
    revisions = revisions_of(request)
    return [
        (
            after.at,
            f"{after.by.name} changed it {ago(after.at, now)}: {in_words(between(request, before, after))}",
        )
        for before, after in pairwise(revisions)
    ]


def versions(request: Request) -> list[Version]:
    """What was asked for in each version, oldest first; nothing while it is as it was sent."""
    revisions = revisions_of(request)
    before = [None, *revisions]
    return [
        {
            "content_version": one.number,
            "at": one.at,
            "by": one.by,
            "name": name_in(request, one),
            "changed": [change.words for change in between(request, last, one)]
            if last is not None
            else [],
        }
        for last, one in zip(before, revisions, strict=False)
    ]


def between(request: Request, before: Revision, after: Revision) -> list[Change]:
    """What differs between two versions of a request."""
    return changes(said_in(before), said_in(after), offering=request.of, now=after.at)


def name_in(request: Request, revision: Revision) -> str:
    """What a version asked for, in a few words; its kind of GPU by today's name of it."""
    spec = request.of.spec.model_validate(revision.spec)
    return request.of.title(
        spec, product=_product_in(request, str(revision.spec.get("flavor", "")))
    )


def _product_in(request: Request, key: str) -> str:
    """What a kind of GPU is called; no query for that of the request."""
    if request.flavor is None or key in ("", request.flavor.key):
        return request.flavor.kind if request.flavor else ""
    cluster, _, name = key.partition("/")
    found = Flavor.objects.filter(cluster__name=cluster, name=name).first()
    return found.kind if found else name


def _past(words: str, revision: Revision, why: str) -> Entry:
    return {
        "phase": "past",
        "title": words,
        "at": revision.at,
        "who": revision.by.name,
        "why": why,
        "tone": "moving",
    }
