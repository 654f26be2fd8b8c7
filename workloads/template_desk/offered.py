"""Which templates are offered: the platform team's own first, then those of the product that are not replaced."""

from collections.abc import Iterable, Mapping

import structlog

from web.documents import DocumentRefused
from workloads.template_desk.models import TemplateVersion
from workloads.templates.library import TEMPLATES, Template

log = structlog.get_logger(__name__)


def offered() -> Mapping[str, Template]:
    """Every template that a run may be of, by its slug; one query."""
    kept = list(TemplateVersion.objects.newest())
    own = [
        one for row in kept if row.is_offered and (one := template_in(row)) is not None
    ]
    taken = {row.slug for row in kept}
    shipped = [one for one in TEMPLATES if one.slug not in taken]
    return {
        one.slug: one for one in (*sorted(own, key=lambda one: one.title), *shipped)
    }


def template_in(row: TemplateVersion) -> Template | None:
    """The template of a version; None, and a line in the log, where an update of the product takes it no longer."""
    try:
        return row.template
    except DocumentRefused as refused:
        log.warning(
            "template cannot be offered",
            template=row.slug,
            version=row.number,
            problem=str(refused),
        )
        return None


def withdrawn(slug: str) -> str:
    """That a template which `offered` does not have was one before, in a sentence; empty for what never was one."""
    row = TemplateVersion.objects.filter(slug=slug).order_by("-number").first()
    return (
        f"“{row.title}” is no longer offered. Choose another template."
        if row is not None
        else ""
    )


def template_titles(
    used: Iterable[tuple[str, int]],
) -> Mapping[tuple[str, int], str]:
    """The titles of templates by slug and version, 0 for the product's own; one query, none without own ones."""
    wanted = set(used)
    shipped = {one.slug: one.title for one in TEMPLATES}
    found = {one: shipped.get(one[0], one[0]) for one in wanted if not one[1]}
    own = {slug for slug, number in wanted if number}
    if own:
        rows = TemplateVersion.objects.filter(slug__in=own)
        kept = {
            (slug, number): title
            for slug, number, title in rows.values_list("slug", "number", "title")
        }
        found |= {one: kept.get(one, one[0]) for one in wanted - found.keys()}
    return found


def template_words(slug: str, number: int) -> str:
    """A run's template as its page names it, whatever has become of the template since."""
    row = (
        TemplateVersion.objects.filter(slug=slug, number=number).first()
        if number
        else None
    )
    if row is not None:
        return f"{row.title}, version {number}"
    return next((one.title for one in TEMPLATES if one.slug == slug), slug)
