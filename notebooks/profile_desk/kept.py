"""Profiles as the database has them: which version counts, what came before, and which are offered."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import structlog
from django.conf import settings
from django.db.models import F

from accounts.models import Team, User
from accounts.roles import Permission
from fleet.models import Cluster, Flavor
from notebooks.models import Profile, ProfileVersion
from notebooks.profiles.document import Document, read_again
from notebooks.profiles.kubespawner import write_list
from notebooks.profiles.publishing import Capacity, Fleet, problems_of
from notebooks.profiles.states import OFFERED, State
from web.documents import DocumentRefused
from web.refusals import NoRight

log = structlog.get_logger(__name__)


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A profile with its versions, newest first."""

    profile: Profile
    versions: Sequence[ProfileVersion]

    @property
    def slug(self) -> str:
        """Its name in addresses."""
        return self.profile.slug

    @property
    def state(self) -> State:
        """How far it has come."""
        return State(self.profile.state)

    @property
    def newest(self) -> ProfileVersion:
        """The version that was written last."""
        return self.versions[0]

    @property
    def number(self) -> int:
        """The newest version's."""
        return self.newest.number

    @property
    def published(self) -> ProfileVersion | None:
        """The version that people get, or got before it was retired."""
        return next(
            (one for one in self.versions if one.number == self.profile.published), None
        )

    @property
    def has_draft(self) -> bool:
        """Whether its newest version is not what people get."""
        return self.state is not State.RETIRED and self.number != self.profile.published

    @property
    def document(self) -> Document | None:
        """What its newest version says; None where an update of the product takes it no longer."""
        return document_in(self.newest)


@dataclass(frozen=True, kw_only=True)
class Offered:
    """A profile that people can choose, in the version that counts; a deprecated one with why and what instead."""

    document: Document
    number: int
    reason: str = ""
    successor: str = ""


def offered() -> list[Offered]:
    """Every profile that people can choose; one query however many there are."""
    counting = ProfileVersion.objects.filter(
        profile__state__in=sorted(OFFERED), number=F("profile__published")
    ).select_related("profile__successor")
    return [
        Offered(
            document=document,
            number=version.number,
            reason=version.profile.reason,
            successor=following.slug
            if (following := offered_instead(version.profile))
            else "",
        )
        for version in counting
        if (document := document_in(version)) is not None
    ]


def offered_instead(profile: Profile) -> Profile | None:
    """What people can choose in place of a profile: its successor, or the one that followed that; None without one."""
    # Each was retired later than the one before it, because a successor can be chosen when it is named; only where the
    # database locks no rows, two that are retired at once may name each other.
    following, gone = profile.successor, {profile.pk}
    while following is not None and following.state not in OFFERED:
        if following.pk in gone:
            return None
        gone.add(following.pk)
        following = following.successor
    return following


def retired_words(profile: Profile) -> str:
    """Why nothing starts from a retired profile, and what to do instead; empty for any other."""
    if profile.state != State.RETIRED:
        return ""
    following = offered_instead(profile)
    instead = (
        f"Launch “{following.slug}” instead." if following else "Choose another one."
    )
    return f"Its profile was retired: {profile.reason.rstrip('.')}. {instead}"


def kept_as(slug: str) -> Kept | None:
    """One profile; None for a slug that nothing has."""
    profile = Profile.objects.filter(slug=slug).select_related("successor").first()
    if profile is None:
        return None
    return Kept(profile=profile, versions=list(profile.versions.select_related("by")))


def all_kept() -> list[Kept]:
    """Every profile with its versions; two queries however many there are."""
    versions: dict[int, list[ProfileVersion]] = defaultdict(list)
    for one in ProfileVersion.objects.select_related("by"):
        versions[one.profile_id].append(one)
    rows = Profile.objects.select_related("successor")
    return [Kept(profile=one, versions=versions[one.pk]) for one in rows]


def documents_kept() -> list[Document]:
    """What the newest version of every profile says that is not retired."""
    kept = [one for one in all_kept() if one.state is not State.RETIRED]
    return [one.document for one in kept if one.document is not None]


def written() -> str:
    """The profiles that are not retired, as one file that can be taken in again, and that KubeSpawner takes, too."""
    return write_list(documents_kept())


@lru_cache(maxsize=256)
def _document(text: str) -> Document:
    """What a text says, read once in the life of a process: a version is never changed, and neither is a document."""
    return read_again(text)


def document_in(version: ProfileVersion) -> Document | None:
    """What a version says; None, and a line in the log, where an update of the product takes it no longer."""
    try:
        return _document(version.text)
    except DocumentRefused as refused:
        log.warning(
            "profile cannot be offered",
            profile=version.profile_id,
            version=version.number,
            problem=str(refused),
        )
        return None


def fleet() -> Fleet:
    """What profiles can name now; three queries."""
    flavors: dict[str, list[Capacity]] = defaultdict(list)
    for name, cluster, resource, per_node in Flavor.objects.filter(
        cluster__in=Cluster.objects.looked_after()
    ).values_list("name", "cluster__name", "resource", "gpus_per_node"):
        flavors[name].append(Capacity(cluster, resource, per_node))
    return Fleet(
        teams=frozenset(Team.objects.values_list("slug", flat=True)),
        clusters=frozenset(Cluster.objects.values_list("name", flat=True)),
        flavors=flavors,
        images=settings.ENV.run_images,
    )


def missing_in(kept: Kept) -> list[tuple[str, str]]:
    """What keeps its newest version from being published, with its places."""
    document = kept.document
    if document is None:
        return [
            (
                "",
                "An update of the product takes this document no longer. Write it again.",
            )
        ]
    return problems_of(document, fleet())


def require_lead(user: User) -> None:
    """Raises NoRight for who does not maintain profiles."""
    if not user.may(Permission.MANAGE_CATALOGUE):
        raise NoRight(
            "Platform leads maintain the profiles.", code="not_a_platform_lead"
        )
