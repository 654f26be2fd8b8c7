"""What the wizard's pages show: clusters, usual sizes with their price, and everything that will be created."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NotRequired, TypedDict

from accounts.current_user import add_refusal
from accounts.models import Team, User
from allocations.budgets import money
from approvals.judging.inputs import answer_of
from approvals.requests.actions import Judged, check_answer, judge
from approvals.requests.presenting import hint_of, verdict
from approvals.requests.wanted import Wanted
from catalogue.models import arrival_on
from connectors.errors import ConnectorError
from connectors.graph import Graph
from fleet.models import Cluster, Environment, Flavor
from fleet.presenting import health
from onboarding.actions import Start
from onboarding.forms import StartForm
from onboarding.images import KIND, PLAIN, registry_name
from onboarding.journey import STEPS, Draft, cluster_of, start_of
from onboarding.recommending import Recommendation, recommend
from policy.rules import Arrival
from provisioning.desired.manifests import tenancy_objects
from provisioning.desired.naming import namespace_of, slug_of
from provisioning.desired.spec import TenancySpec, egress_from, services_from
from provisioning.models import Tenancy
from provisioning.words import plain
from ui.parts import Choice, StepLink, Verdict
from web.refusals import Refused

MOST_PEOPLE = 12
ENVIRONMENTS: Mapping[str, str] = {
    Environment.DEV: "Trying things out. Small asks are decided at once.",
    Environment.TEST: "Checking what will go live. Small asks are decided at once.",
    Environment.PRODUCTION: "Serving people. Somebody always looks at what is asked.",
}
SIZES = ((1, 7), (2, 7))
SOON = {
    Arrival.WRITTEN: "usually in about 5 seconds",
    Arrival.WHEN_IT_ANSWERS: "once the cluster answers again",
    Arrival.COMMITTED: "committed to Git in about 5 seconds",
    Arrival.IN_AZURE: "usually within minutes",
    Arrival.PROPOSED: "in a pull request in about 5 seconds",
}


@dataclass(frozen=True)
class People:
    """Who will be in the team: how many, the first of them by name, and why that is not known."""

    count: int
    first: Sequence[str]
    unknown: str = ""

    @property
    def more(self) -> int:
        """How many are not named."""
        return self.count - len(self.first)


class ClusterCard(Choice):
    """A cluster to choose, with its health and its kinds of GPU."""

    name: str
    health: tuple[str, str]
    kinds: Sequence[Flavor]


class Planned(TypedDict):
    """An object that will be created."""

    kind: str
    name: str
    plain: str


class StartAnswer(TypedDict):
    """The answer to the first ask, that the form is incomplete, or that nothing is asked for."""

    incomplete: NotRequired[bool]
    nothing: NotRequired[bool]
    verdict: NotRequired[Verdict]
    until: NotRequired[datetime]
    start: NotRequired[Start]
    usd: NotRequired[Decimal]
    usd_per_day: NotRequired[Decimal]
    people_decide: NotRequired[bool]


class Review(StartAnswer):
    """Everything that sending a draft will do."""

    values: Mapping[str, str]
    slug: str
    project: str
    cluster: Cluster | None
    people: People
    send_label: str
    environment: str
    namespace: str
    recommendation: Recommendation
    objects: Sequence[Planned]
    objects_note: str


def steps(draft: Draft, current: str) -> list[StepLink]:
    """The wizard's steps; those that are done lead back to themselves."""
    order = list(STEPS)
    rows: list[StepLink] = []
    for step, label in STEPS.items():
        reachable = step in draft.done or order.index(step) <= order.index(
            draft.next_step
        )
        state = "now" if step == current else "done" if step in draft.done else "next"
        rows.append(
            {
                "label": label,
                "state": state,
                "href": draft.url(step) if reachable and step != current else "",
            }
        )
    return rows


def environments() -> list[Choice]:
    """The kinds of place as cards."""
    return [
        {"value": e.value, "title": str(e.label), "text": ENVIRONMENTS[e]}
        for e in Environment
    ]


def cluster_cards(clusters: Sequence[Cluster]) -> list[ClusterCard]:
    """Clusters as cards with purpose, region, health, kinds, what is free and what it costs.

    `clusters` come with their flavors prefetched.
    """
    return [
        {
            "value": cluster.name,
            "title": cluster.title,
            "name": cluster.name,
            "text": f"{cluster.get_purpose_display()} · {cluster.region}",
            "health": health(cluster),
            "kinds": [
                f
                for f in cluster.flavors.all()
                if f.is_offered and f.dedicated_to_id is None
            ],
        }
        for cluster in clusters
    ]


def sizes(cluster: Cluster, *, now: datetime) -> list[Choice]:
    """Nothing, one and two of the cheapest kind, two of the dearest, and exactly; each with its whole cost."""
    kinds = list(Flavor.objects.offered_to(None).filter(cluster=cluster))
    rows: list[Choice] = [
        {
            "value": "none",
            "title": "No GPUs yet",
            "text": "Only the space; anybody can ask later",
            "figure": "$0",
        }
    ]
    wanted = [(kind, gpus, days) for kind in kinds[:1] for gpus, days in SIZES]
    wanted += [(kind, 2, 7) for kind in kinds[1:][-1:]]
    rows += [_size(kind, gpus, days, now) for kind, gpus, days in wanted]
    if kinds:
        rows.append(
            {
                "value": "exact",
                "title": "Exactly…",
                "text": "Kind, number and days as you say",
                "figure": "",
            }
        )
    return rows


def _size(kind: Flavor, gpus: int, days: int, now: datetime) -> Choice:
    usd = money.cost(
        gpus=gpus,
        price=kind.price_per_gpu_hour,
        start=now,
        end=now + timedelta(days=days),
    )
    length = "1 week" if days == 7 else f"{days} days"
    return {
        "value": f"{kind.pk}:{gpus}:{days}",
        "title": f"{gpus} × {kind.kind}",
        "text": f"{length} · {kind.free_words}",
        "figure": f"${usd:,.0f}",
    }


def first_ask(start: Start, *, environment: str, cost_centre: str) -> Wanted:
    """The first ask of a team that is not there yet: its place and its team are in no database, its budget is fresh."""
    place = Tenancy(
        team=Team(cost_centre=cost_centre),
        cluster=start.flavor.cluster,
        environment=environment,
    )
    wanted = Wanted.of_gpus(
        tenancy=place,
        flavor=start.flavor,
        gpus=start.gpus,
        until=start.until,
        purpose=start.purpose,
        reason=start.reason,
    )
    return replace(wanted, budgets={})


def planned_objects(
    cluster: Cluster,
    *,
    team: str,
    project: str,
    cost_centre: str,
    environment: str,
    entra_group: str,
) -> list[Planned]:
    """The objects that bringing a team on board will create, with their names."""
    spec = TenancySpec(
        tenancy=0,
        team=team,
        project=project,
        cost_centre=cost_centre,
        environment=environment,
        namespace=namespace_of(team=team, project=project),
        entra_group=str(uuid.UUID(entra_group)),
        cohort=cluster.cohort,
        storage_class=cluster.storage_class,
        flavors=(),
        jupyterhub_namespace=cluster.jupyterhub_namespace,
        services=services_from(cluster.shared_services),
        egress=egress_from(cluster.egress),
        dashboards=cluster.dashboards,
        queueing=cluster.queueing,
    )
    objects: list[Planned] = [
        {
            "kind": m["kind"],
            "name": m["metadata"]["name"],
            "plain": plain(m["kind"], m["metadata"]["name"]),
        }
        for m in tenancy_objects(spec)
    ]
    if name := registry_name():
        objects.append({"kind": KIND, "name": name, "plain": PLAIN})
    return objects


def answer_to(
    form: StartForm, draft: Draft, *, person: User, now: datetime
) -> StartAnswer:
    """The answer part for a start form as it stands: the policy's verdict, what changes, what to shorten."""
    if not form.is_valid():
        return {"incomplete": True}
    start = start_of(form.cleaned_data, now=now)
    if start is None:
        return {"nothing": True}
    judged = _judged(start, draft, person=person, now=now)
    hint = hint_of(judged.remedies)
    return {
        "verdict": verdict(answer_of(judged.answer), hint=hint),
        "until": start.until,
        "start": start,
        "usd": judged.answer.usd,
        "usd_per_day": judged.answer.usd_per_day,
        "people_decide": bool(judged.answer.route),
    }


def _judged(start: Start, draft: Draft, *, person: User, now: datetime) -> Judged:
    wanted = first_ask(
        start,
        environment=draft.values.get("environment", "dev"),
        cost_centre=draft.values.get("cost_centre", ""),
    )
    return judge(wanted, person=person, now=now)


def takes(form: StartForm, draft: Draft, *, person: User, now: datetime) -> bool:
    """Whether the first ask can be sent; what speaks against it is put at its field."""
    start = start_of(form.cleaned_data, now=now)
    if start is None:
        return True
    try:
        check_answer(
            _judged(start, draft, person=person, now=now).answer,
            reason=start.reason,
        )
    except Refused as refusal:
        add_refusal(form, refusal)
    return not form.errors


def review(draft: Draft, *, people: People, person: User, now: datetime) -> Review:
    """Everything that sending the draft will do, before it does."""
    values = draft.values
    team, project = slug_of(values["name"]), slug_of(values["project"])
    cluster = cluster_of(draft)
    form = StartForm(dict(values), cluster=cluster) if cluster else None
    objects = planned_objects(
        cluster or Cluster(),
        team=team,
        project=project,
        cost_centre=values["cost_centre"],
        environment=values["environment"],
        entra_group=values["entra_group"],
    )
    answer: StartAnswer = {"incomplete": True}
    if form:
        answer = _briefly(answer_to(form, draft, person=person, now=now))
    return {
        "values": values,
        "slug": team,
        "project": project,
        "cluster": cluster,
        "people": people,
        "send_label": f"Bring {values['name']} on board",
        "environment": str(Environment(values["environment"]).label),
        "namespace": namespace_of(team=team, project=project),
        "recommendation": recommend(values),
        "objects": objects,
        "objects_note": _how_many(objects, cluster),
        **answer,
    }


def _how_many(objects: Sequence[Planned], cluster: Cluster | None) -> str:
    """How many objects there will be on the cluster, as every page counts them, and how soon."""
    access = sum(each["kind"] == KIND for each in objects)
    with_access = " and access to the registry" if access else ""
    return f"{len(objects) - access} objects{with_access}, {SOON[arrival_on(cluster)]}"


def _briefly(answer: StartAnswer) -> StartAnswer:
    """The answer with the rules that decide only: the others were shown on the step before."""
    if "verdict" in answer:
        rules = [rule for rule in answer["verdict"]["rules"] if rule.get("deciding")]
        answer["verdict"] = answer["verdict"] | {"rules": rules, "hint": None}
    return answer


def people_of(group: str, graph: Graph) -> People:
    """Everybody in the group, nested groups included; says so when the directory does not answer."""
    try:
        names = sorted(person.name for person in graph.members(group) if person.enabled)
    except ConnectorError as error:
        return People(0, (), error.message)
    return People(len(names), tuple(names[:MOST_PEOPLE]))
