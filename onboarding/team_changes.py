"""Changing what a team is called, who pays, who is in it and who answers for it, and what follows on its clusters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from accounts.actions import (
    check_cost_centre,
    name_cost_centre,
)
from accounts.cost_centres.models import unconfirmed, unconfirmed_words
from accounts.memberships import (
    PartChange,
    lead_by_owner,
    members_by_group,
    record_parts,
)
from accounts.models import GroupHeld, Team, User
from accounts.roles import Permission, Role
from accounts.tokens.actions import rename_pipelines
from allocations.changes import refresh
from audit.events import Kind
from audit.log import record
from capacity.openai import actions as model_endpoints
from capacity.registry import actions as registry
from connectors.graph import Graph, Group
from onboarding.actions import check_group
from onboarding.notices import tell_cost_centre, tell_owner
from provisioning.desired.manifests import changed_objects
from provisioning.desired.naming import NameRefused, display_name
from provisioning.models import Tenancy
from web.refusals import BadInput, Conflict, NoRight


@dataclass(frozen=True, kw_only=True)
class TeamChange:
    """What is to be different about a team; None and "" leave it as it is. The short name never changes."""

    name: str = ""
    cost_centre: str = ""
    group: Group | None = None
    owner: User | None = None


@dataclass(frozen=True)
class ClusterEffect:
    """Objects of one namespace that will be written again, as "RoleBinding team-users"."""

    tenancy: Tenancy
    objects: Sequence[str]


@dataclass(frozen=True)
class Effects:
    """What a change leads to: fields with before and after, namespaces written again, people who join and leave.

    `sentences` say who leads the team from then on and who no more, and that nobody has confirmed its cost centre.
    """

    fields: Mapping[str, tuple[str, str]]
    clusters: Sequence[ClusterEffect]
    joining: Sequence[str]
    leaving: Sequence[str]
    sentences: Sequence[str] = ()


def may_change(team: Team, user: User) -> bool:
    """Whether this person may change the team: its owner, its leads, platform leads."""
    if user.may(Permission.MANAGE_TEAMS):
        return True
    return user.leads(team) or (user.is_active and team.accountable_id == user.pk)


def check_may_change(team: Team, user: User) -> None:
    """Raise NoRight for who may not change the team."""
    if not may_change(team, user):
        raise NoRight(
            "The team’s owner, its leads and platform leads change it.",
            code="not_a_team_lead",
        )


def group_of_change(team: Team, oid: str, *, by: User, graph: Graph) -> Group | None:
    """The group that a team is to be made of, asked of the directory; None when it is the present one."""
    if not oid or oid.lower() == str(team.entra_group):
        return None
    return check_group(oid, by=by, graph=graph)


def effects(team: Team, change: TeamChange) -> Effects:
    """What the change would lead to; writes nothing, raises BadInput or Conflict as the change itself would."""
    wanted = _checked(team, change)
    before = {
        "name": team.name,
        "cost_centre": team.cost_centre,
        "entra_group_name": team.entra_group_name,
        "owner": team.accountable.name,
    }
    fields = {
        name: (before[name], str(wanted[name])) for name in before if name in wanted
    }
    # Another group counts though it has the same name, and so does another person.
    is_other_owner = wanted.get("owner", team.accountable) != team.accountable
    fields = {
        name: (old, new)
        for name, (old, new) in fields.items()
        if old != new
        or name == "entra_group_name"
        or (name == "owner" and is_other_owner)
    }
    joining, leaving = _people(team, change)
    sentences = [told for name, told in _leads(team, change) if name not in leaving]
    if "cost_centre" in fields and (code := unconfirmed(wanted["cost_centre"])):
        sentences.append(unconfirmed_words(code))
    return Effects(fields, _on_clusters(team, wanted), joining, leaving, sentences)


@transaction.atomic
def change_team(team: Team, change: TeamChange, *, by: User, now: datetime) -> Effects:
    """Change a team and publish what follows for each of its namespaces; returns what changed.

    Raises NoRight for others than its owner, its leads and platform leads, BadInput and Conflict naming the field.
    The directory was asked about the group beforehand.
    """
    check_may_change(team, by)
    # The team's row and its tenancies before the audit chain, as every other action takes them.
    locked = Team.objects.select_for_update(of=("self",), no_key=True).select_related(
        "owner", "created_by"
    )
    team = locked.get(pk=team.pk)
    found = effects(team, change)
    if not found.fields:
        return found
    owner_before = team.accountable
    for name, value in _checked(team, change).items():
        setattr(team, name, value)
    try:
        with transaction.atomic():
            team.save()
    except IntegrityError as error:
        raise Conflict(
            "Somebody took this name or group a moment ago.",
            code="name_taken",
            field="name",
        ) from error
    rename_pipelines(team)
    parts: list[PartChange] = []
    if change.group is not None:
        parts += members_by_group(team)
        registry.follow(team, now=now)
        model_endpoints.look_again(team, now=now)
    if "owner" in found.fields:
        parts += lead_by_owner(team)
        tell_owner(team, owner_before, by=by, now=now)
    if change.cost_centre:
        name_cost_centre(team.cost_centre, now=now)
        if "cost_centre" in found.fields:
            tell_cost_centre(team, by=by, now=now)
    _publish(team, by=by, now=now)
    record(
        Kind.TEAM_CHANGED,
        actor=by.as_actor(),
        subject=("team", team.pk),
        team_id=team.pk,
        name=team.name,
        before={field: before for field, (before, _) in found.fields.items()},
        after={field: after for field, (_, after) in found.fields.items()},
    )
    record_parts(parts, actor=by.as_actor())
    return found


def _checked(team: Team, change: TeamChange) -> dict[str, Any]:
    """The columns that the change sets, each checked; raises BadInput or Conflict naming the field."""
    wanted: dict[str, Any] = {}
    if change.name:
        wanted["name"] = _free_name(team, change.name)
    if change.cost_centre:
        wanted["cost_centre"] = check_cost_centre(change.cost_centre)
    if change.group is not None:
        wanted |= {
            "entra_group": change.group.oid,
            "entra_group_name": change.group.name,
        }
    if change.owner is not None:
        _check_owner(team, change)
        wanted["owner"] = change.owner
    return wanted


def _free_name(team: Team, name: str) -> str:
    try:
        shown = display_name(name)
    except NameRefused as refusal:
        raise BadInput(str(refusal), code="bad_name", field="name") from refusal
    if not shown:
        raise BadInput(
            "Write the name that people call the team by.",
            code="bad_name",
            field="name",
        )
    if Team.objects.filter(name__iexact=shown).exclude(pk=team.pk).exists():
        raise Conflict(
            "There is a team of this name already. Choose another.",
            code="name_taken",
            field="name",
        )
    return shown


def _check_owner(team: Team, change: TeamChange) -> None:
    """The owner is of the team: whoever answers for it sees what it asks for and what it costs."""
    group = change.group.oid if change.group is not None else team.entra_group
    if not GroupHeld.objects.filter(user=change.owner, group=group).exists():
        raise BadInput(
            "The owner is a member of the team’s group who has signed in.",
            code="not_a_member",
            field="owner",
        )


def _leads(team: Team, change: TeamChange) -> list[tuple[str, str]]:
    """Who leads the team from the change of its owner on, and who no more, by their names and in a sentence.

    The role of a lead stays with who has it.
    """
    if change.owner is None or change.owner.pk == team.accountable_id:
        return []
    told = []
    owner, before = change.owner, team.accountable
    if Role.TEAM_LEAD not in owner.roles:
        rights = "may change it, have it leave and stop its notebooks"
        told.append((owner.name, f"{owner.name} leads the team: {rights}."))
    if (
        Role.TEAM_LEAD not in before.roles
        and before.memberships.filter(team=team).exists()
    ):
        told.append((before.name, f"{before.name} leads it no more: is a member."))
    return told


def _people(team: Team, change: TeamChange) -> tuple[list[str], list[str]]:
    """Names of those who join and who leave the team with another group, as far as they have signed in."""
    if change.group is None:
        return [], []
    members = team.memberships.of_people()
    now_in = set(members.values_list("user__name", flat=True))
    rows = GroupHeld.objects.filter(group=change.group.oid, user__is_active=True)
    then_in = set(rows.values_list("user__name", flat=True))
    return sorted(then_in - now_in), sorted(now_in - then_in)


def _on_clusters(team: Team, wanted: Mapping[str, Any]) -> list[ClusterEffect]:
    cost_centre = str(wanted.get("cost_centre", team.cost_centre))
    entra_group = str(wanted.get("entra_group", team.entra_group))
    rows = (
        Tenancy.objects.present()
        .filter(team=team, generation__gt=0)
        .select_related("cluster", "project")
    )
    found = []
    for row in rows:
        after = replace(row.desired, cost_centre=cost_centre, entra_group=entra_group)
        found.append(ClusterEffect(row, changed_objects(row.desired, after)))
    return [effect for effect in found if effect.objects]


def _publish(team: Team, *, by: User, now: datetime) -> None:
    rows = Tenancy.objects.locked().present().filter(team=team)
    for tenancy in rows.select_related("team", "cluster", "project").order_by("pk"):
        refresh(tenancy, actor=by.as_actor(), now=now)
