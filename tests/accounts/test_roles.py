"""What people may do follows from app roles and group object ids, never from a name."""

import pytest

from accounts.roles import APP_ROLES, HOLDERS, Permission, Role, roles_from

LEADS = "00000000-0000-4000-9000-000000000004"
GROUPS = {LEADS: "platform_lead"}


@pytest.mark.parametrize(
    ("app_roles", "groups", "found"),
    [
        ([], [], {Role.DATA_SCIENTIST}),
        (["PlatformLead"], [], {Role.PLATFORM_LEAD}),
        ([], [LEADS], {Role.PLATFORM_LEAD}),
        (
            ["TeamLead", "Auditor"],
            [LEADS],
            {Role.TEAM_LEAD, Role.AUDITOR, Role.PLATFORM_LEAD},
        ),
        (["platform_lead", "PLATFORMLEAD", "Admin", ""], [], {Role.DATA_SCIENTIST}),
        (
            [],
            ["platform-leads", "platform_lead", "PlatformLead"],
            {Role.DATA_SCIENTIST},
        ),
        ([], ["00000000-0000-4000-9000-000000000005"], {Role.DATA_SCIENTIST}),
    ],
)
def test_roles_come_from_app_roles_and_group_ids(
    app_roles: list[str], groups: list[str], found: set[Role]
) -> None:
    assert roles_from(app_roles=app_roles, groups=groups, role_groups=GROUPS) == found


def test_every_role_can_be_given_and_every_permission_has_a_holder() -> None:
    assert set(APP_ROLES.values()) == set(Role)
    assert set(HOLDERS) == set(Permission)
    assert all(HOLDERS.values())


def test_what_each_role_may_do() -> None:
    seeing = {
        Permission.SEE_ALL_TEAMS,
        Permission.SEE_AUDIT,
        Permission.SEE_POLICY_DRAFTS,
    }
    may = {role: {p for p in Permission if role in HOLDERS[p]} for role in Role}
    assert may == {
        Role.DATA_SCIENTIST: set(),
        Role.TEAM_LEAD: set(),
        Role.AUDITOR: seeing,
        Role.ENGINEERING_LEADERSHIP: {
            *seeing,
            Permission.DECIDE_AS_LEADERSHIP,
            Permission.ACTIVATE_POLICY,
        },
        Role.PLATFORM_LEAD: set(Permission) - {Permission.DECIDE_AS_LEADERSHIP},
    }
