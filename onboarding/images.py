"""Where a team keeps its images: its access to the registry, as the checklist and the pages say it."""

from accounts.models import Team
from capacity.models import RegistryAccess
from capacity.registry.actions import registry_id
from ui.parts import ChecklistItem


def access_of(team: Team) -> RegistryAccess | None:
    """The team's access to the registry; None where there is no registry, or the team has left."""
    registry = registry_id()
    if not registry:
        return None
    wanted = RegistryAccess.objects.filter(team=team, registry=registry, is_wanted=True)
    return wanted.select_related("team").first()


def checklist_item(access: RegistryAccess) -> ChecklistItem:
    """A line of the checklist, as those of a cluster's objects."""
    tone, word = ("good", "Ready") if access.granted_at else ("moving", "Looking")
    if access.granted_at is None and access.message:
        tone, word = "waiting", "Next"
    return {
        "kind": "Registry",
        "plain": "where your images are",
        "name": access.repositories or access.registry.rpartition("/")[2],
        "tone": tone,
        "word": word,
        "since": access.granted_at,
        "cause": access.sentence,
        "explain": "",
        "retry": "",
    }
