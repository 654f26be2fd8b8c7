"""Templates as their keepers see them: which document counts, and what there was before."""

from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from accounts.models import User
from accounts.roles import Permission
from web.refusals import NoRight
from workloads.template_desk.models import TemplateVersion
from workloads.template_desk.offered import template_in
from workloads.templates.document import document_of, write
from workloads.templates.library import BY_SLUG, TEMPLATES, Template


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A template with its versions, newest first; without any it is as it came with the product."""

    slug: str
    versions: Sequence[TemplateVersion]

    @property
    def newest(self) -> TemplateVersion | None:
        """The version that counts; None for a shipped one that nobody has changed."""
        return self.versions[0] if self.versions else None

    @property
    def number(self) -> int:
        """The newest version's; 0 without any."""
        return self.newest.number if self.newest else 0

    @property
    def is_offered(self) -> bool:
        """Whether people can start runs of it, as far as its keepers are concerned."""
        return self.newest.is_offered if self.newest else True

    @property
    def title(self) -> str:
        """What people read."""
        return self.newest.title if self.newest else BY_SLUG[self.slug].title

    @property
    def yaml(self) -> str:
        """The document that counts, as text."""
        return (
            self.newest.text if self.newest else write(document_of(BY_SLUG[self.slug]))
        )

    @property
    def template(self) -> Template | None:
        """The template; None where it is taken back, or an update of the product takes its document no longer."""
        if self.newest is None:
            return BY_SLUG[self.slug]
        return template_in(self.newest) if self.newest.is_offered else None


def kept_as(slug: str) -> Kept | None:
    """One template; None for a slug that nothing has."""
    rows = list(TemplateVersion.objects.filter(slug=slug).select_related("by"))
    return Kept(slug=slug, versions=rows) if rows or slug in BY_SLUG else None


def all_kept() -> list[Kept]:
    """Every template with its newest version, also those that are taken back: the platform team's own first."""
    newest = {
        one.slug: one for one in TemplateVersion.objects.newest().select_related("by")
    }
    own = [Kept(slug=slug, versions=[row]) for slug, row in newest.items()]
    shipped = [
        Kept(slug=one.slug, versions=[]) for one in TEMPLATES if one.slug not in newest
    ]
    return [*sorted(own, key=lambda one: one.title), *shipped]


def written() -> str:
    """The platform team's own templates that are offered as one YAML file, which can be taken in again."""
    documents = [
        yaml.safe_load(one.text)
        for one in TemplateVersion.objects.newest()
        if one.is_offered
    ]
    return str(
        yaml.safe_dump(
            {"templates": documents}, sort_keys=False, allow_unicode=True, width=100
        )
    )


def require_lead(user: User) -> None:
    """Raises NoRight for who does not keep templates."""
    if not user.may(Permission.MANAGE_CATALOGUE):
        raise NoRight("Platform leads keep the templates.", code="not_a_platform_lead")
