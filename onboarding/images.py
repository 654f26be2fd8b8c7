"""Where a team keeps its images: its access to the registry, as the checklist and the pages say it."""

from accounts.models import Team
from capacity.models import RegistryAccess
from capacity.registry.actions import registry_id
from ui.parts import ChecklistItem

KIND, PLAIN = "Registry", "where your images are"


def access_of(team: Team) -> RegistryAccess | None:
    """The team's access to the registry; None where there is no registry, or the team has left."""
    registry = registry_id()
    if not registry:
        return None
    wanted = RegistryAccess.objects.filter(team=team, registry=registry, is_wanted=True)
    return wanted.select_related("team").first()


def registry_name() -> str:
    """The name of the registry that every team gets access to; empty where there is none."""
    return registry_id().rpartition("/")[2]


def checklist_item(access: RegistryAccess) -> ChecklistItem:
    """A line of the checklist, as those of a cluster's objects."""
    tone, word = ("good", "Ready") if access.granted_at else ("moving", "Looking")
    if access.granted_at is None and access.message:
        tone, word = "waiting", "Next"
    return {
        "kind": KIND,
        "plain": PLAIN,
        "name": access.repositories or access.registry.rpartition("/")[2],
        "tone": tone,
        "word": word,
        "since": access.granted_at,
        "cause": access.sentence,
        "explain": "",
        "retry": "",
        "is_object": False,
    }
