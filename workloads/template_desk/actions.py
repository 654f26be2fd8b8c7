"""What platform leads do with templates: keep a version, take a template back, take a file of them in."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction

from accounts.models import User
from audit.events import Kind
from audit.log import record
from fleet.images import refused_image
from web.documents import MOST_PROBLEMS, UNSTORABLE, DocumentRefused, parse
from web.refusals import BadDocument, BadInput, Conflict
from workloads.template_desk.kept import require_lead
from workloads.template_desk.models import TemplateVersion
from workloads.templates.document import (
    Document,
    document_from,
    document_of,
    read,
    write,
)
from workloads.templates.library import BY_SLUG

LONGEST_WHY = 200
MOST_IN_A_FILE = 100
Said = str | Mapping[str, Any]


class NotATemplate(BadDocument):
    """A document that is no template."""

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__(problems, code="not_a_template")


@transaction.atomic
def keep(
    said: Said,
    *,
    by: User,
    now: datetime,
    slug: str = "",
    seen: int | None = None,
    why: str = "",
) -> TemplateVersion:
    """Offer a template as a document says it, as its next version; what is offered so already stays as it is.

    `slug` is whose version it has to be, empty for a new template; `seen` the newest number that the author knew, 0 for
    none. Raises NoRight, NotATemplate naming every place that is wrong, Conflict where somebody kept another version
    meanwhile.
    """
    require_lead(by)
    document = document_said(said)
    if slug and document.slug != slug:
        raise NotATemplate(
            [
                (
                    "slug",
                    f"This is the template {slug}; write a new one for another name.",
                )
            ]
        )
    try:
        return _keep(document, by=by, now=now, seen=seen, why=why)[0]
    except Conflict as refusal:
        if slug or seen != 0:
            raise
        # Whoever writes a new template saw no version of another one, and has nothing to look at again.
        taken = f"There is a template {document.slug} already. Choose another slug, or change that one."
        raise NotATemplate([("slug", taken)]) from refusal


@transaction.atomic
def take_in(
    text: str, *, by: User, now: datetime, why: str = ""
) -> list[TemplateVersion]:
    """Offer every template of a file, all or none: what `export` wrote, or one template alone. Raises as `keep`.

    Returns the versions that this made, without those that were offered so already.
    """
    require_lead(by)
    kept = [
        _keep(one, by=by, now=now, seen=None, why=why) for one in documents_in(text)
    ]
    return [row for row, is_new in kept if is_new]


@transaction.atomic
def take_back(
    slug: str, *, by: User, now: datetime, seen: int | None = None, why: str = ""
) -> TemplateVersion:
    """Offer a template no longer, also one that comes with the product; runs of it go on. Raises NoRight, Conflict.

    BadInput is for a slug that no template has.
    """
    require_lead(by)
    newest = TemplateVersion.objects.filter(slug=slug).order_by("-number").first()
    if newest is None and slug not in BY_SLUG:
        raise BadInput(
            "There is no such template.", code="no_such_template", field="slug"
        )
    if newest is not None and not newest.is_offered:
        return newest
    title = newest.title if newest is not None else BY_SLUG[slug].title
    text = newest.text if newest is not None else write(document_of(BY_SLUG[slug]))
    row = _add(
        slug, title, text, newest, is_offered=False, by=by, now=now, seen=seen, why=why
    )
    record(
        Kind.TEMPLATE_TAKEN_BACK,
        actor=by.as_actor(),
        subject=("template", slug),
        version=row.number,
        reason=why,
    )
    return row


def document_said(said: Said) -> Document:
    """The document of a YAML text or a JSON value; raises NotATemplate naming every place that is wrong."""
    try:
        document = read(said) if isinstance(said, str) else document_from(said)
    except DocumentRefused as refused:
        raise NotATemplate(refused.problems) from refused
    said_of = {
        at: refused_image(one, settings.ENV.run_images)
        for at, one in enumerate(document.images)
    }
    if strange := [(f"images.{at}", words) for at, words in said_of.items() if words]:
        raise NotATemplate(strange)
    return document


def documents_in(text: str) -> list[Document]:
    """The templates of a file; raises NotATemplate."""
    try:
        said = parse(text)
    except DocumentRefused as refused:
        raise NotATemplate(refused.problems) from refused
    if not isinstance(said, dict) or set(said) != {"templates"}:
        return [document_said(text)]
    parts = said["templates"]
    if not isinstance(parts, list) or not 1 <= len(parts) <= MOST_IN_A_FILE:
        raise NotATemplate(
            [("templates", f"Write a list of 1 to {MOST_IN_A_FILE} templates.")]
        )
    found: list[Document] = []
    wrong: list[tuple[str, str]] = []
    for at, part in enumerate(parts):
        if not isinstance(part, dict):
            wrong.append((f"templates.{at}", "Write keys with values."))
            continue
        try:
            found.append(
                document_said({str(key): value for key, value in part.items()})
            )
        except NotATemplate as refused:
            wrong += [
                (f"templates.{at}.{place}".rstrip("."), what)
                for place, what in refused.problems
            ]
    if wrong:
        raise NotATemplate(wrong[:MOST_PROBLEMS])
    if len({one.slug for one in found}) < len(found):
        raise NotATemplate([("templates", "Two templates of the file have one slug.")])
    return found


def _keep(
    document: Document, *, by: User, now: datetime, seen: int | None, why: str
) -> tuple[TemplateVersion, bool]:
    """The version that counts from now on, and whether it is a new one."""
    newest = (
        TemplateVersion.objects.filter(slug=document.slug).order_by("-number").first()
    )
    text = write(document)
    if newest is not None and newest.is_offered and newest.text == text:
        return newest, False
    row = _add(
        document.slug,
        document.title,
        text,
        newest,
        is_offered=True,
        by=by,
        now=now,
        seen=seen,
        why=why,
    )
    record(
        Kind.TEMPLATE_KEPT,
        actor=by.as_actor(),
        subject=("template", row.slug),
        version=row.number,
        shape=document.shape,
        reason=why,
    )
    return row, True


def _add(
    slug: str,
    title: str,
    text: str,
    newest: TemplateVersion | None,
    *,
    is_offered: bool,
    by: User,
    now: datetime,
    seen: int | None,
    why: str,
) -> TemplateVersion:
    if UNSTORABLE.search(why) or len(why) > LONGEST_WHY:
        raise BadInput(
            f"Write one sentence of at most {LONGEST_WHY} characters.",
            code="reason",
            field="why",
        )
    number = newest.number if newest is not None else 0
    if seen is not None and seen != number:
        raise _meanwhile(number)
    try:
        with transaction.atomic():
            return TemplateVersion.objects.create(
                slug=slug,
                number=number + 1,
                title=title,
                text=text,
                is_offered=is_offered,
                why=why.strip(),
                by=by,
                at=now,
            )
    except IntegrityError as error:
        raise _meanwhile(number + 1) from error


def _meanwhile(number: int) -> Conflict:
    return Conflict(
        f"Somebody kept version {number} of this template meanwhile. Look at it, and keep yours again.",
        code="template_changed",
    )
