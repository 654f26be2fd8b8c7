"""Calls every address by every method as everybody, for one's own things, another team's and missing ones."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from http.cookies import SimpleCookie
from typing import Any

from django.db import transaction
from django.test import Client
from django.urls import URLPattern, get_resolver
from django.utils import timezone

from accounts.models import ApiToken, User
from allocations.models import Brake
from audit.events import Kind
from audit.log import record
from audit.models import Event
from capacity.models import (
    FamilyQuota,
    MachinePrice,
    Meter,
    QuotaIncrease,
    Subscription,
)
from notebooks.models import Hub
from notebooks.profile_desk.actions import save
from offboarding.models import Departure
from provisioning.models import Drift, Tenancy
from tests import factories
from tests.calling import token_of
from tests.capacity.orphan_attacks import orphan
from tests.world import Side, World

PROFILE = "{slug: small, title: Small, image: registry.example.com/notebook:1, cpus: 1, memory: 4}"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
ROLES = (
    "anonymous",
    "outsider",
    "member",
    "team_lead",
    "platform_lead",
    "leadership",
    "auditor",
    "read_token",
    "run_token",
    "ask_token",
)
# Of a platform lead, who may do more than their tokens.
TOKENS = ("read_token", "run_token", "ask_token")
# Whoever sees no team but their own: for them another team's thing and a missing one are the same.
BOUND = ("anonymous", "outsider", "member", "team_lead")
OBJECTS = ("own", "other", "missing")
MISSING = {
    "pk": "999999999",
    "slug": "nobody",
    "name": "nowhere",
    "prefix": "ffffffff",
    "flavor": "none",
    # A budget is set for the month under way or a later one.
    "month": f"{timezone.now() + timedelta(days=1):%Y-%m}",
    "key": "nothing",
    "code": "CC-none",
    "number": "999999",
    "cluster": "nowhere",
    "token": "nothing",
    "action": "quartermaster:nothing",
    "path": "HEAD",
}


@dataclass(frozen=True)
class Cell:
    """One call's answer; `body` is without what names the call itself."""

    status: int
    body: str


class Prober:
    """Everybody's clients in one world; every call is undone."""

    def __init__(self, here: World) -> None:
        self.here = here
        # Something to carry out in each team.
        self.tasks = {
            side.team.pk: factories.task(side.granted).pk
            for side in (here.own, here.other)
        }
        # A leaving that somebody asked for, in each team.
        self.departures = {
            side.team.pk: departure(side).pk for side in (here.own, here.other)
        }
        # Something that somebody changed on the cluster, in each team.
        self.drifts = {
            side.team.pk: drifted(side).pk for side in (here.own, here.other)
        }
        # A run in each team.
        self.runs = {
            side.team.pk: factories.run(side.tenancy, side.asker).pk
            for side in (here.own, here.other)
        }
        # A service that promises something in each team.
        self.service_levels = {
            side.team.pk: factories.service_level(side.tenancy, side.asker).pk
            for side in (here.own, here.other)
        }
        # A notebook server in each team.
        self.notebooks = {
            side.team.pk: factories.notebook(side.tenancy, side.asker).pk
            for side in (here.own, here.other)
        }
        # Machines in Azure that nobody works on any more, in each team; and some that are orphaned, of no team.
        # A model in Azure OpenAI in each team.
        self.models = {
            side.team.pk: factories.model_endpoint(side.team).pk
            for side in (here.own, here.other)
        }
        # Machines in Azure that nobody works on any more, in each team; and some that are in no books, of no team.
        self.reservations = {
            side.team.pk: factories.reservation(
                side.team, parked_at=timezone.now(), message="Gave up."
            ).pk
            for side in (here.own, here.other)
        }
        self.orphan = orphan().pk
        # Ends that wait for a platform lead: they are of no team.
        self.brake = Brake.objects.create(clock=timezone.now(), due=11, live=11).pk
        connected_hub(here)
        # A quota of Azure's and a request for more of it: both belong to no team.
        self.meter, self.increase, self.subscription = quota_of_azure(here)
        self.price = listed_price().pk
        self.profile = drafted_profile(here.people["platform_lead"])
        # Something that happened in each team.
        self.events = {
            side.team.pk: happened(side).seq for side in (here.own, here.other)
        }
        self.tokens = {role: token_of(user) for role, user in here.people.items()}
        self.tokens["read_token"] = token_of(
            here.people["platform_lead"], ApiToken.Scope.READ
        )
        self.tokens["run_token"] = token_of(
            here.people["platform_lead"], ApiToken.Scope.RUN
        )
        self.tokens["ask_token"] = token_of(
            here.people["platform_lead"], ApiToken.Scope.ASK
        )
        # An application that acts for each team.
        self.identities = {
            side.team.pk: factories.identity(side.team, side.asker).pk
            for side in (here.own, here.other)
        }
        self.pages = {role: Client(raise_request_exception=False) for role in ROLES}
        for role, user in here.people.items():
            self.pages[role].force_login(user)
        self.sessions = {
            role: client.cookies.output(header="").strip()
            for role, client in self.pages.items()
        }
        self.api = Client(raise_request_exception=False)

    def call(self, route: str, method: str, role: str, thing: str) -> Cell:
        """The answer to one call."""
        path = "/" + self.path(route, role, thing)
        is_api = route.startswith("api/")
        headers = {"Idempotency-Key": "matrix", "If-Match": '"1"'} if is_api else {}
        if (is_api or role in TOKENS) and role in self.tokens:
            headers["Authorization"] = f"Bearer {self.tokens[role]}"
        client = self.api if is_api else self.pages[role]
        # Signing out is undone too, in the database and in the browser.
        client.cookies = SimpleCookie("" if is_api else self.sessions[role])
        with transaction.atomic():
            answer = client.generic(
                method,
                path,
                "{}" if method == "DELETE" else self.body(route),
                "application/json" if is_api else FORM,
                headers=headers,
            )
            transaction.set_rollback(True)
        return Cell(answer.status_code, plain(answer) if is_api else "")

    def path(self, route: str, role: str, thing: str) -> str:
        """The route with the names of a thing in it."""
        values = MISSING | (
            {} if thing == "missing" else self.names(route, role, thing)
        )
        for name, value in values.items():
            for kind in ("int", "slug", "str", "path"):
                route = route.replace(f"<{kind}:{name}>", value)
        return "api/nothing" if route == NO_ADDRESS else route

    def names(self, route: str, role: str, thing: str) -> dict[str, str]:
        """What identifies a thing, by parameter."""
        side = self.here.own if thing == "own" else self.here.other
        found = {"slug": side.team.slug}
        own = thing == "own"
        pks: list[tuple[str, Any]] = [
            ("allocations/", side.allocation.pk),
            ("/renew", side.granted.pk),
            ("requests/", side.waiting.pk),
            ("approvals/", side.waiting.pk),
            ("tasks/", self.tasks[side.team.pk]),
            ("departures/", self.departures[side.team.pk]),
            ("leaving/", self.departures[side.team.pk]),
            ("tenancies/", side.tenancy.pk),
            ("delegations/", side.stand_in.pk),
            ("stand-in/", side.stand_in.pk),
            ("places/", side.tenancy.pk),
            ("orphans/", self.orphan if own else MISSING["pk"]),
            ("reservations/", self.reservations[side.team.pk]),
            ("runs/", self.runs[side.team.pk]),
            ("service-levels/", self.service_levels[side.team.pk]),
            ("notebooks/", self.notebooks[side.team.pk]),
            ("model-endpoints/", self.models[side.team.pk]),
            ("capacity/models/", self.models[side.team.pk]),
            ("drift/", self.drifts[side.team.pk]),
            ("identities/", self.identities[side.team.pk]),
            ("audit/", self.events[side.team.pk]),
            ("events/", self.events[side.team.pk]),
            ("expiry-brakes/", self.brake if own else MISSING["pk"]),
            ("limits/", self.meter if own else MISSING["pk"]),
            ("increases/", self.increase if own else MISSING["pk"]),
            ("subscriptions/", self.subscription if own else MISSING["pk"]),
            ("prices/", self.price if own else MISSING["pk"]),
        ]
        named = next((pk for part, pk in pks if part in route), None)
        if named is not None:
            found["pk"] = str(named)
        elif "channels/" in route or "deliveries/" in route:
            found["pk"] = str(self.told(route)) if thing == "own" else MISSING["pk"]
        elif "policy/" in route:
            found |= (
                {"pk": str(self.here.draft.pk), "number": "1"} if thing == "own" else {}
            )
        elif thing == "own":
            found |= {"pk": str(self.here.flavor.pk), "flavor": self.here.flavor.name}
        if thing == "own":
            name = self.here.cluster.name
            found |= {
                "name": name,
                "cluster": name,
                "key": "volume",
                "code": side.team.cost_centre,
                "action": "quartermaster:list-teams",
            }
        if "help/images/" in route:
            # Pictures of the help belong to no team.
            found["name"] = "chain.png" if own else MISSING["name"]
        if "templates/" in route:
            # One that comes with the product, which belongs to no team.
            found["slug"] = "single-node"
        if "profiles/" in route:
            # Profiles belong to no team either.
            found["slug"] = self.profile if own else MISSING["slug"]
        mine = self.tokens.get(role, "").split("_")
        found["prefix"] = (
            mine[1] if thing == "own" and len(mine) > 1 else side.token.prefix
        )
        return found

    def told(self, route: str) -> int:
        """The channel or the delivery that there is: both belong to no team."""
        return self.here.delivery.pk if "deliveries/" in route else self.here.channel.pk

    def body(self, route: str) -> str:
        """A body that the address takes as far as it can be known without the caller."""
        ask = {
            "team": "vision",
            "flavor": "training-eastus/a100",
            "gpus": 1,
            "purpose": "training",
            "until": (timezone.now() + timedelta(days=1)).isoformat(),
        }
        submission = {
            "tenancy": self.here.own.tenancy.pk,
            "template": "single-node",
            "title": "Fine-tune BERT",
            "values": {
                "image": "registry.example.com/train:1",
                "program": ["train.py"],
            },
        }
        bodies: dict[str, Any] = {
            "api/v1/runs/": submission,
            "api/v1/runs/preview/": submission,
            "api/v1/service-levels/": {
                "tenancy": self.here.own.tenancy.pk,
                "service": "bert",
                "meter": "istio",
                "tier": "batch",
            },
            "api/v1/service-levels/<int:pk>/": {"meter": "istio", "tier": "batch"},
            "api/v1/places/<int:pk>/notebooks/": {"profile": self.profile},
            "api/v1/requests/": ask,
            "api/v1/requests/preview/": ask,
            "api/v1/requests/<int:pk>/reject/": {"reason": "Use the T4s."},
            "api/v1/requests/<int:pk>/ask/": {"text": "Why four?"},
            "api/v1/requests/<int:pk>/answer/": {"text": "Two runs."},
            "api/v1/requests/<int:pk>/comments/": {"text": "For the review."},
            "api/v1/teams/<slug:slug>/budgets/<str:month>/": {"limit_usd": "20000.00"},
            "api/v1/teams/<slug:slug>/": {"tier": "trusted"},
            "api/v1/departures/": {"team": "vision", "reason": "The project is over."},
            "api/v1/prices/<int:pk>/confirm/": {"doubted_at": "2026-01-01T00:00:00Z"},
            "api/v1/departures/<int:pk>/confirm/": {"name": "Vision"},
            "api/v1/clusters/<slug:name>/accept-identity/": {"identity_found": "u-1"},
            "api/v1/clusters/<slug:name>/write-off/": {"name": "training"},
            "api/v1/tenancies/<int:pk>/protection/": {"is_protected": False},
            "api/v1/delegations/": {
                "to": str(self.here.other.asker.oid),
                "until": (timezone.now() + timedelta(days=1)).isoformat(),
            },
            "api/v1/channels/": {
                "name": "x",
                "way": "slack",
                "url": "https://127.0.0.1/",
                "kinds": ["task_done"],
            },
            "api/v1/policy/yaml/": {"yaml": "lapse_days: 7"},
            "api/v1/policy/drafts/<int:pk>/": {"reason": "For the matrix."},
            "api/v1/policy/versions/<int:number>/cancel/": {
                "reason": "For the matrix."
            },
            "policy/versions/<int:number>/cancel": {"reason": "For the matrix."},
            "api/v1/allocations/<int:pk>/give-back/": {"reason": "For the matrix."},
            "api/v1/requests/<int:pk>/let-go/": {"reason": "For the matrix."},
            "api/v1/tasks/<int:pk>/give/": {"to": None},
            "api/v1/tasks/<int:pk>/done/": {"note": "There."},
            "api/v1/tasks/<int:pk>/cannot/": {"reason": "No quota."},
            "api/v1/drift/<int:pk>/adopt/": {"seen": Drift(fields=PODS).content},
            "api/v1/drift/<int:pk>/ignore/": {
                "reason": "A course.",
                "until": (timezone.now() + timedelta(days=1)).isoformat(),
            },
            "api/v1/profiles/<slug:slug>/": {"yaml": PROFILE},
            "api/v1/profiles/<slug:slug>/retire/": {"reason": "Nobody needs it."},
            "api/v1/profiles/<slug:slug>/deprecate/": {"reason": "Nobody needs it."},
            "api/v1/profiles/yaml/": {"yaml": "[{display_name: Tiny}]"},
            "api/v1/hubs/<slug:cluster>/": {
                "address": "https://hub.example.com",
                "token_file": "hub",
            },
            "api/v1/limits/<int:pk>/increases/": {"limit": 384, "reason": "Training."},
            "api/v1/cost-centres/": {"code": "CC-NEW"},
            "api/v1/teams/<slug:slug>/identities/": {
                "name": "x",
                "client_id": "1f0d5b9e-3c4a-4a57-9d2e-8b6f0c1a2d3e",
                "object_id": "2f0d5b9e-3c4a-4a57-9d2e-8b6f0c1a2d3e",
                "scope": "run",
            },
            "api/v1/tokens/": {"name": "x", "scope": "read", "days": 1},
            "api/v1/clusters/": {
                "name": "new",
                "title": "New",
                "region": "x",
                "purpose": "training",
            },
            "api/v1/flavors/": {
                "cluster": "training-eastus",
                "name": "new",
                "product": "L4",
                "memory_gb": 24,
                "gpus_per_node": 1,
                "price_per_gpu_hour": "1.00",
            },
        }
        return json.dumps(bodies.get(route, {})) if route.startswith("api/") else ""


def drafted_profile(by: User) -> str:
    """A draft of a notebook profile that can be published."""
    return save(PROFILE, by=by, now=timezone.now()).profile.slug


def listed_price() -> MachinePrice:
    """A machine of Azure's list, which belongs to no team."""
    return MachinePrice.objects.create(
        region="eastus",
        size="Standard_NC4as_T4_v3",
        on_demand=Decimal("0.526"),
        seen_at=timezone.now(),
    )


def connected_hub(here: World) -> Hub:
    """The hub of the cluster, past the action: its token's file is nowhere."""
    return Hub.objects.create(
        cluster=here.cluster,
        address="https://hub.example.com",
        token_file="hub",
        next_look_at=timezone.now(),
    )


def quota_of_azure(here: World) -> tuple[int, int, str]:
    """The ids of a limit, of a request for more of it that is not sent, and of its subscription."""
    now, quota = timezone.now(), {"limit": 192, "used": 96, "seen_at": timezone.now()}
    subscription = Subscription.objects.create(id="one", next_look_at=now)
    meter = Meter.objects.create(
        key="quota:one/eastus/nc", title="NC in eastus", unit="vCPUs", **quota
    )
    FamilyQuota.objects.create(
        subscription=subscription, region="eastus", name="NC", title="NC", **quota
    )
    increase = QuotaIncrease.objects.create(
        subscription="one",
        region="eastus",
        family="NC",
        title="NC in eastus",
        limit=384,
        limit_before=192,
        reason="Training.",
        asked_by=here.people["platform_lead"],
        asked_at=now,
        requeue_at=now,
    )
    return meter.pk, increase.pk, subscription.pk


PODS = [{"path": "spec.hard.pods", "wanted": "50", "live": "80", "who": ""}]


def drifted(side: Side) -> Drift:
    """The team's quota, changed by hand."""
    now = timezone.now()
    return Drift.objects.create(
        tenancy=side.tenancy,
        kind="ResourceQuota",
        namespace=side.tenancy.namespace,
        name="team-quota",
        what="changed",
        since=now,
        first_seen_at=now,
        fields=PODS,
    )


def happened(side: Side) -> Event:
    """An event of the team."""
    with transaction.atomic():
        return record(
            Kind.TIER_SET,
            actor=side.asker.as_actor(),
            subject=("team", side.team.pk),
            team_id=side.team.pk,
        )


NO_ADDRESS = "api/(none)"
FORM = "application/x-www-form-urlencoded"


def departure(side: Side) -> Departure:
    """A team's leaving that its asker asked for; its place is not protected any more."""
    now = timezone.now()
    Tenancy.objects.filter(pk=side.tenancy.pk).update(is_protected=False)
    made = Departure.objects.create(
        team=side.team,
        is_whole=False,
        leaves_at=now,
        hold=False,
        retention_days=30,
        reason="The project is over.",
        needs_second=False,
        asked_by=side.asker,
        asked_at=now,
    )
    made.places.create(tenancy=side.tenancy)
    return made


def plain(answer: Any) -> str:
    """A problem without its address and id; nothing of other answers."""
    if answer.headers.get("Content-Type") != "application/problem+json":
        return ""
    kept = {
        key: value
        for key, value in answer.json().items()
        if key not in ("instance", "request_id")
    }
    return json.dumps(kept, sort_keys=True)


def routes() -> list[str]:
    """Every address that the resolver knows."""
    return sorted(_walk(get_resolver().url_patterns, ""))


def _walk(patterns: Any, before: str) -> Iterator[str]:
    for pattern in patterns:
        route = before + (
            str(pattern.pattern)
            or ("(none)" if before == "api/" and pattern.name != "api-root" else "")
        )
        if isinstance(pattern, URLPattern):
            yield route
        else:
            yield from _walk(pattern.url_patterns, route)


def things(route: str) -> tuple[str, ...]:
    """What the route can be called for."""
    if "<" not in route:
        return ("own",)
    return (
        OBJECTS
        if any(name in route for name in ("slug:slug", "int:pk", "prefix"))
        else ("own", "missing")
    )
