"""The roles people hold and what each role may do: pure, one table."""

from collections.abc import Iterable, Mapping
from enum import StrEnum


class Role(StrEnum):
    """A role of the portal; the value is also the Entra app role's value in snake case."""

    DATA_SCIENTIST = "data_scientist"
    TEAM_LEAD = "team_lead"
    PLATFORM_LEAD = "platform_lead"
    ENGINEERING_LEADERSHIP = "engineering_leadership"
    AUDITOR = "auditor"

    @property
    def words(self) -> str:
        """The role as pages say it: 'Platform lead'."""
        return self.value.replace("_", " ").capitalize()


class Permission(StrEnum):
    """What a role may do beyond being a member of a team."""

    SEE_ALL_TEAMS = "see_all_teams"
    SEE_AUDIT = "see_audit"
    ONBOARD_ANY_GROUP = "onboard_any_group"
    DECIDE_AS_PLATFORM = "decide_as_platform"
    DECIDE_AS_LEADERSHIP = "decide_as_leadership"
    MANAGE_CLUSTERS = "manage_clusters"
    MANAGE_BUDGETS = "manage_budgets"
    GIVE_BACK_FOR_TEAMS = "give_back_for_teams"
    MANAGE_COST_CENTRES = "manage_cost_centres"
    MANAGE_NOTICES = "manage_notices"
    MANAGE_TIERS = "manage_tiers"
    MANAGE_CATALOGUE = "manage_catalogue"
    SEE_POLICY_DRAFTS = "see_policy_drafts"
    MANAGE_POLICY = "manage_policy"
    ACTIVATE_POLICY = "activate_policy"
    REMOVE_TEAMS = "remove_teams"
    MANAGE_ACCESS = "manage_access"
    MANAGE_TEAMS = "manage_teams"


HOLDERS: Mapping[Permission, frozenset[Role]] = {
    Permission.SEE_ALL_TEAMS: frozenset(
        {Role.PLATFORM_LEAD, Role.ENGINEERING_LEADERSHIP, Role.AUDITOR}
    ),
    Permission.SEE_AUDIT: frozenset(
        {Role.PLATFORM_LEAD, Role.ENGINEERING_LEADERSHIP, Role.AUDITOR}
    ),
    Permission.ONBOARD_ANY_GROUP: frozenset({Role.PLATFORM_LEAD}),
    Permission.DECIDE_AS_PLATFORM: frozenset({Role.PLATFORM_LEAD}),
    Permission.DECIDE_AS_LEADERSHIP: frozenset({Role.ENGINEERING_LEADERSHIP}),
    Permission.MANAGE_CLUSTERS: frozenset({Role.PLATFORM_LEAD}),
    Permission.MANAGE_BUDGETS: frozenset({Role.PLATFORM_LEAD}),
    Permission.GIVE_BACK_FOR_TEAMS: frozenset({Role.PLATFORM_LEAD}),
    Permission.MANAGE_COST_CENTRES: frozenset({Role.PLATFORM_LEAD}),
    Permission.MANAGE_NOTICES: frozenset({Role.PLATFORM_LEAD}),
    Permission.MANAGE_TIERS: frozenset({Role.PLATFORM_LEAD}),
    Permission.MANAGE_CATALOGUE: frozenset({Role.PLATFORM_LEAD}),
    Permission.SEE_POLICY_DRAFTS: frozenset(
        {Role.PLATFORM_LEAD, Role.ENGINEERING_LEADERSHIP, Role.AUDITOR}
    ),
    Permission.MANAGE_POLICY: frozenset({Role.PLATFORM_LEAD}),
    Permission.ACTIVATE_POLICY: frozenset(
        {Role.PLATFORM_LEAD, Role.ENGINEERING_LEADERSHIP}
    ),
    Permission.REMOVE_TEAMS: frozenset({Role.PLATFORM_LEAD}),
    Permission.MANAGE_ACCESS: frozenset({Role.PLATFORM_LEAD}),
    Permission.MANAGE_TEAMS: frozenset({Role.PLATFORM_LEAD}),
}
DECIDING = (Permission.DECIDE_AS_PLATFORM, Permission.DECIDE_AS_LEADERSHIP)

APP_ROLES: Mapping[str, Role] = {
    "DataScientist": Role.DATA_SCIENTIST,
    "TeamLead": Role.TEAM_LEAD,
    "PlatformLead": Role.PLATFORM_LEAD,
    "EngineeringLeadership": Role.ENGINEERING_LEADERSHIP,
    "Auditor": Role.AUDITOR,
}


def roles_from(
    *, app_roles: Iterable[str], groups: Iterable[str], role_groups: Mapping[str, str]
) -> frozenset[Role]:
    """The roles that these app-role values and group object ids give; names never count.

    `role_groups` maps a group's object id to a role value. Who has no other role is a data scientist.
    """
    found = {APP_ROLES[value] for value in app_roles if value in APP_ROLES}
    found |= {Role(role_groups[oid]) for oid in groups if oid in role_groups}
    return frozenset(found or {Role.DATA_SCIENTIST})
