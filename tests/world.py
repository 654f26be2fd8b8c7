"""Two teams that know nothing of each other, somebody of every role, and something of every kind in both teams."""

from dataclasses import dataclass, field
from datetime import timedelta

from django.utils import timezone

from accounts.models import ApiToken, Delegation, Team, User
from accounts.roles import Role
from allocations.models import Allocation
from approvals.models import Request
from fleet.models import Cluster, Flavor
from notices.message import Message
from notices.models import Channel, Delivery, Notice
from notices.sealing import seal
from onboarding.models import Onboarding
from policy.models import PolicyDraft, PolicyVersion
from provisioning.models import Tenancy
from tests import factories
from tests.remembered import remembered


@dataclass(frozen=True)
class Side:
    """One team with its place, a waiting request, a granted one, and what is held under that."""

    team: Team
    asker: User
    tenancy: Tenancy
    waiting: Request
    granted: Request
    allocation: Allocation
    token: ApiToken
    stand_in: Delegation


@dataclass(frozen=True)
class World:
    """`own` is the side that the members belong to."""

    own: Side
    other: Side
    cluster: Cluster
    flavor: Flavor
    channel: Channel
    delivery: Delivery
    draft: PolicyDraft
    people: dict[str, User] = field(default_factory=dict)


@remembered
def world() -> World:
    """A new world."""
    cluster = factories.cluster("training-eastus")
    flavor = factories.flavor(cluster, "a100", gpus_total=64)
    vision, speech = factories.team("Vision"), factories.team("Speech")
    people = {
        "outsider": factories.person(
            "Mallory Finch", teams=[factories.team("Robotics")]
        ),
        "member": factories.person("Ada Okafor", teams=[vision]),
        "team_lead": factories.person("Chloe Lindqvist", Role.TEAM_LEAD),
        "platform_lead": factories.person("Priya Raman", Role.PLATFORM_LEAD),
        "leadership": factories.person("Elena Petrova", Role.ENGINEERING_LEADERSHIP),
        "auditor": factories.person("Sam Achebe", Role.AUDITOR),
    }
    factories.join(vision, people["team_lead"], lead=True)
    channel = Channel.objects.create(
        name="Platform",
        way="slack",
        sealed=seal("https://hooks.slack.com/x"),
        kinds=["request_decided"],
    )
    return World(
        own=side(vision, cluster, flavor, lead=people["platform_lead"]),
        other=side(
            speech,
            cluster,
            flavor,
            lead=factories.person("Marcus Weber", Role.PLATFORM_LEAD),
        ),
        cluster=cluster,
        flavor=flavor,
        people=people,
        channel=channel,
        delivery=given_up(people["member"]),
        draft=drafted(),
    )


def drafted() -> PolicyDraft:
    """A draft of the policy by a platform lead who is in neither team, ready to be activated by any other."""
    base, now = PolicyVersion.objects.get(number=1), timezone.now()
    return PolicyDraft.objects.create(
        base=base,
        document=base.document | {"lapse_days": 7},
        why="Faster.",
        created_at=now,
        updated_at=now,
        author=factories.person("Noor Haddad", Role.PLATFORM_LEAD),
    )


def side(team: Team, cluster: Cluster, flavor: Flavor, *, lead: User) -> Side:
    """Everything of one team; its asker is a member of nothing else, and stands in for a lead next month."""
    asker = factories.person(f"Asker of {team.name}", teams=[team])
    tenancy = factories.tenancy(team, cluster)
    granted = factories.request(asker, tenancy, flavor, gpus=1)
    waiting = factories.request(asker, tenancy, flavor, gpus=4, days=2)
    Onboarding.objects.create(
        team=team,
        tenancy=tenancy,
        request=granted,
        by=asker,
        submitted_at=granted.created_at,
    )
    token = ApiToken.objects.create(
        user=asker,
        name="theirs",
        prefix=f"{team.pk:08x}",
        digest=f"{team.pk:064x}",
        scope="read",
        expires_at=granted.until,
    )
    allocation = Allocation.objects.get(hold=granted.hold_id, ended_at=None)
    return Side(
        team,
        asker,
        Tenancy.objects.get(pk=tenancy.pk),
        waiting,
        granted,
        allocation,
        token,
        stand_in(lead, asker),
    )


def stand_in(giver: User, to: User) -> Delegation:
    """A seat that is lent next month, so that it gives nothing yet."""
    start = timezone.now() + timedelta(days=30)
    return Delegation.objects.create(
        giver=giver, to=to, starts_at=start, until=start + timedelta(days=7)
    )


def given_up(to: User) -> Delivery:
    """A mail to somebody that could not be delivered."""
    now = timezone.now()
    notice = Notice.objects.create(
        person=to,
        kind="request_decided",
        subject_type="request",
        subject_id=1,
        link="/",
        pace="at_once",
        at=now,
        message=Message("Decided", "Your request was decided.").as_json(),
    )
    return Delivery.objects.create(
        notice=notice, way="email", state="parked", next_at=now, last_error="Refused."
    )
