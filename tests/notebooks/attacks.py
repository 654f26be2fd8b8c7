"""What the tables of notebooks refuse, with an attack on each rule."""

from collections.abc import Callable, Mapping
from typing import Any

from notebooks.models import Profile, ProfileVersion
from tests.scene import NOW


def profile(**fields: Any) -> Profile:
    """A profile past every action; a draft unless it is told otherwise."""
    return Profile.objects.create(**{"slug": "x1", "reason": "Old."} | fields)


def version(world: Any, number: int) -> ProfileVersion:
    """A version of the profile, not kept yet."""
    made, _ = Profile.objects.get_or_create(slug="x1")
    return ProfileVersion(profile=made, number=number, title="X", text="", by=world.scene.ada, at=NOW)


def followed_by_itself() -> None:
    """A deprecated profile that people are offered instead of itself."""
    made = profile(state="deprecated", published=1)
    Profile.objects.filter(pk=made.pk).update(successor=made)


NAMED: Mapping[str, Callable[[Any], object]] = {
    "a_profile_is_in_a_known_state": lambda w: profile(state="asleep"),
    "a_profile_is_offered_in_a_version": lambda w: profile(state="published"),
    "a_profile_is_deprecated_for_a_reason": lambda w: profile(state="deprecated", published=1, reason=""),
    "only_a_profile_that_goes_has_a_successor": lambda w: profile(slug="x2", successor=profile()),
    "no_profile_succeeds_itself": lambda w: followed_by_itself(),
    "one_profile_version_per_number": lambda w: ProfileVersion.objects.bulk_create(
        [version(w, 1), version(w, 1)]
    ),
    "a_profile_version_counts_from_one": lambda w: ProfileVersion.objects.bulk_create([version(w, 0)]),
}
UNIQUE: Mapping[str, Callable[[Any], object]] = {
    "notebooks.Profile.slug": lambda w: [profile(), profile()],
}
ALSO: Mapping[str, Callable[[Any], object]] = {
    "a version of a profile changed": lambda w: (
        ProfileVersion.objects.bulk_create([version(w, 1)]),
        ProfileVersion.objects.update(text="colour: red"),
    ),
    "a retired profile that comes back": lambda w: Profile.objects.filter(
        pk=profile(state="retired").pk
    ).update(state="draft"),
}
