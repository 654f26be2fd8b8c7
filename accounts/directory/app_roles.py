"""Which app roles the directory says somebody is assigned: asked for everybody at once, and only when in doubt."""

from collections.abc import Iterable, Mapping

from django.conf import settings

from accounts.actions import object_ids
from accounts.models import User
from accounts.roles import APP_ROLES, Role
from connectors.graph import Graph


class Assignments:
    """The assignments of the portal's own application, listed when the first role is in doubt, and then kept."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._listed: Mapping[str, frozenset[str]] | None = None

    def withdrawn(self, user: User, groups: Iterable[str]) -> frozenset[str]:
        """The roles that a token gave this person, now in these groups, and would not give again.

        Roles of groups are not looked at here; the directory is not asked about who holds no other. Raises
        ConnectorError.
        """
        now_in = object_ids(groups)
        by_group = settings.ENV.role_groups
        explained = {
            by_group[oid] for oid in (*now_in, *user.groups) if oid in by_group
        }
        held = (
            set(user.roles_held.values_list("role", flat=True))
            - explained
            - {Role.DATA_SCIENTIST}
        )
        return (
            frozenset(held - self._of(str(user.oid), *now_in)) if held else frozenset()
        )

    def _of(self, *principals: str) -> set[str]:
        """What a token of somebody who is these principals would give.

        Entra ID assigns a group's app role to its direct members, and `principals` has the groups around those too:
        somebody who was moved into an inner group keeps the role until their next sign-in.
        """
        if self._listed is None:
            self._listed = self._graph.app_roles(settings.ENV.entra_client_id)
        values = {value for oid in principals for value in self._listed.get(oid, ())}
        return {APP_ROLES[value].value for value in values if value in APP_ROLES}
