"""Notebooks as people use them, by page and API: launched once, followed with reasons, stopped, kept, and who may."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Membership, User
from accounts.roles import Role
from fleet.models import Cluster
from notebooks.hubs.models import Hub
from notebooks.profile_desk import actions as desk
from notebooks.profiles.document import read
from notebooks.profiles.idle import Reclaim
from notebooks.profiles.priority import goes_first_words
from notebooks.servers import actions
from notebooks.servers.ending import reclaim_idle
from notebooks.servers.models import NotebookServer as Server
from notebooks.servers.states import State, StopReason
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from tests.notebooks.hub_server import HubOfTests
from tests.notebooks.test_servers import (
    A100,
    CPU,
    ada,
    hub,
    hub_server,
    launch,
    lead,
    running,
    standing,
    tenancy,
    worked_on,
)
from tests.pages import Element, parsed
from tests.workloads.copying import Copying
from tests.workloads.test_choosing import waits
from workloads.models import Feed
from workloads.notebook_pages.shown import label_values
from workloads.notebook_pages.words import idle_words, length, limit_words

pytestmark = pytest.mark.django_db
__all__ = ["ada", "hub", "hub_server", "lead", "standing", "tenancy"]
PAGE = "/teams/vision/notebooks"


def browser(user: User) -> Client:
    found = Client()
    found.force_login(user)
    return found


def page(response: Any) -> Element:
    return parsed(response.content.decode())


def words(response: Any) -> str:
    return page(response).words


def form(response: Any, profile: str) -> dict[str, str]:
    """What a browser would send of a card's form as it stands."""
    forms = [one for one in page(response).walk() if one.tag == "form"]
    [whole] = [
        one
        for one in forms
        if any(
            each.attrs.get("name") == "profile" and each.attrs.get("value") == profile
            for each in one.walk()
        )
    ]
    found: dict[str, str] = {}
    for one in whole.walk():
        name = one.attrs.get("name", "")
        if one.tag == "input":
            found[name] = one.attrs.get("value", "")
        elif one.tag == "select":
            options = [each for each in one.walk() if each.tag == "option"]
            chosen = next(
                (each for each in options if "selected" in each.attrs), options[0]
            )
            found[name] = chosen.attrs["value"]
    found.pop("csrfmiddlewaretoken", None)
    return found


def buttons(response: Any) -> set[str]:
    """What can be pressed on a page besides its frame."""
    [main] = [one for one in page(response).walk() if one.tag == "main"]
    return {one.words for one in main.walk() if "button" in one.classes}


def opens(response: Any) -> Element | None:
    """The link into the notebook."""
    [main] = [one for one in page(response).walk() if one.tag == "main"]
    links = [
        one
        for one in main.walk()
        if one.tag == "a" and one.attrs.get("target") == "_blank"
    ]
    return links[0] if links else None


def pod(server: Server, *, phase: str = "Pending", **status: Any) -> dict[str, Any]:
    """The pod that KubeSpawner makes for a server."""
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"jupyter-{server.name}",
            "namespace": server.tenancy.namespace,
            "uid": f"uid-{server.name}",
            "creationTimestamp": "2026-11-22T16:00:00Z",
            "labels": {
                "hub.jupyter.org/username": server.username,
                "hub.jupyter.org/servername": server.name,
                "kueue.x-k8s.io/queue-name": "default",
            },
        },
        "spec": {
            "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
            "containers": [
                {"name": "notebook", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
            ],
        },
        "status": {"phase": phase, **status},
    }


def workload(server: Server) -> dict[str, Any]:
    """What Kueue made of that pod: it waits."""
    name, namespace = f"jupyter-{server.name}", server.tenancy.namespace
    return {
        "kind": "Workload",
        "metadata": {
            "name": f"pod-{name}",
            "namespace": namespace,
            "uid": f"workload-{server.name}",
            "creationTimestamp": "2026-11-22T16:00:00Z",
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "name": name,
                    "uid": f"uid-{server.name}",
                    "controller": True,
                }
            ],
        },
        "spec": {
            "active": True,
            "queueName": "default",
            "podSets": [
                {
                    "name": "main",
                    "count": 1,
                    "template": {
                        "spec": {
                            "containers": [
                                {"resources": {"requests": {"nvidia.com/gpu": "1"}}}
                            ]
                        }
                    },
                }
            ],
        },
        "status": {
            "conditions": [
                {
                    "type": "QuotaReserved",
                    "status": "False",
                    "reason": "Pending",
                    "message": "couldn't assign flavors to pod set main: insufficient unused quota for "
                    "nvidia.com/gpu in flavor a100, 1 more needed",
                    "lastTransitionTime": "2026-11-22T16:00:00Z",
                }
            ]
        },
    }


def queue_of(tenancy: Tenancy) -> list[dict[str, Any]]:
    """The team's queue: 2 A100 of its own."""
    name = tenancy.namespace
    quota = [{"name": "nvidia.com/gpu", "nominalQuota": "2"}]
    flavors = [{"name": "a100", "resources": quota}]
    groups = [{"coveredResources": ["nvidia.com/gpu"], "flavors": flavors}]
    active = {"conditions": [{"type": "Active", "status": "True"}]}
    return [
        {
            "kind": "ClusterQueue",
            "metadata": {"name": name, "uid": "cq"},
            "spec": {"resourceGroups": groups},
            "status": active,
        },
        {
            "kind": "LocalQueue",
            "metadata": {"name": "default", "namespace": name, "uid": "lq"},
            "spec": {"clusterQueue": name},
            "status": active,
        },
    ]


def test_a_card_launches_what_was_chosen_once_and_leads_to_its_page(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    person = browser(ada)
    shown = person.get(PAGE)
    typed = form(shown, "a100")
    assert typed["options.size"] == "one"
    for said in (
        "Unused for 1 h, it is stopped",
        "You are told 15 min before",
        "12 h at most",
        "Another image",
    ):
        assert said in words(shown)

    typed |= {"title": "Explore", "options.image": "base"}
    first, again = person.post(PAGE, typed), person.post(PAGE, typed)

    server = Server.objects.get()
    assert (
        first.headers["Location"]
        == again.headers["Location"]
        == f"/notebooks/{server.pk}"
    )
    assert (server.title, server.options) == (
        "Explore",
        {"size": "one", "image": "base"},
    )
    assert hub.users == {}
    worked_on(server)
    assert hub.options_of(server.name)["profile"] == f"a100--{tenancy.namespace}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "field", "said"),
    [
        (
            {"options.image--unlisted-choice": "docker.io/x:1"},
            "options.image--unlisted-choice",
            "our registry",
        ),
        ({"options.size": "nine"}, "options.size", "one, four"),
        ({"options.size": "four"}, "", "Ask for 2 more"),
        ({"title": "x" * 61}, "title", "at most 60"),
    ],
)
def test_what_is_refused_stands_at_its_field_with_what_was_typed(
    tenancy: Tenancy, ada: User, typed: dict[str, str], field: str, said: str
) -> None:
    person = browser(ada)
    filled = form(person.get(PAGE), "a100") | {"title": "Explore"} | typed

    answer = person.post(PAGE, filled)

    assert answer.status_code == 422
    assert said in words(answer)
    kept = form(answer, "a100")
    assert {name: kept[name] for name in typed if name != "options.size"} == {
        name: value for name, value in typed.items() if name != "options.size"
    }
    at_fault = {
        one.attrs["name"]
        for one in page(answer).walk()
        if one.attrs.get("aria-invalid") == "true"
    }
    assert at_fault == ({field} if field else set())
    assert not Server.objects.exists()


def test_what_was_chosen_stays_chosen_after_a_refusal(
    tenancy: Tenancy, ada: User
) -> None:
    person = browser(ada)
    filled = form(person.get(PAGE), "a100") | {"options.size": "four"}

    assert form(person.post(PAGE, filled), "a100")["options.size"] == "four"


def test_a_profile_that_is_gone_is_said_and_nothing_starts(
    tenancy: Tenancy, ada: User
) -> None:
    person = browser(ada)

    answer = person.post(PAGE, {"profile": "nothing"}, follow=True)

    assert "can no longer be chosen" in words(answer)
    assert not Server.objects.exists()


def test_a_cluster_without_a_hub_says_so_and_launches_nothing(
    tenancy: Tenancy, ada: User
) -> None:
    Hub.objects.all().delete()
    shown = browser(ada).get(PAGE)

    assert "has no JupyterHub that the portal knows" in words(shown)
    assert "It can start at once" not in words(shown)
    assert "Launch" not in buttons(shown)
    assert "devcontainer.json" in buttons(shown)


@pytest.mark.slow
def test_the_page_begins_where_something_can_be_launched(
    tenancy: Tenancy, ada: User
) -> None:
    without = factories.cluster("development")
    factories.flavor(without, "a100")
    other = factories.tenancy(tenancy.team, without)
    factories.make_true(other)

    assert form(browser(ada).get(PAGE), "a100")["profile"] == "a100"
    shown = browser(ada).get(f"{PAGE}?place={other.pk}")
    assert "has no JupyterHub that the portal knows" in shown.content.decode()


def test_only_people_of_the_team_launch(
    tenancy: Tenancy, lead: User, ada: User
) -> None:
    assert browser(lead).post(PAGE, {"profile": "cpu"}).status_code == 403
    assert browser(factories.person()).post(PAGE, {"profile": "cpu"}).status_code == 404


def test_the_page_lists_what_runs_with_own_ones_first(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    mei = factories.person("Mei Chen", teams=[tenancy.team])
    mine = running(tenancy, ada, hub)
    other = launch(tenancy, mei, profile="cpu", key="two")
    shown = page(browser(ada).get(PAGE))

    links = [
        one.attrs["href"]
        for one in shown.walk()
        if one.attrs.get("href", "").startswith("/notebooks/")
    ]

    assert links == [f"/notebooks/{mine.pk}", f"/notebooks/{other.pk}"]
    acts = {
        one.attrs["formaction"] for one in shown.walk() if "formaction" in one.attrs
    }
    assert acts == {f"/notebooks/{mine.pk}/stop"}


def test_a_ready_notebook_opens_for_its_owner_alone(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    mei = factories.person("Mei Chen", teams=[tenancy.team])
    server = running(tenancy, ada, hub)

    own, others = (browser(who).get(f"/notebooks/{server.pk}") for who in (ada, mei))

    link = opens(own)
    assert link is not None
    assert link.attrs["href"] == f"{hub.address}/user/{ada.oid}/{server.name}/"
    assert link.attrs["rel"] == "noopener"
    assert opens(others) is None
    assert buttons(own) >= {"Stop", "Stop the notebook", "Keep for 2 hours"}
    assert buttons(others) == set()
    assert "Ada Okafor can work in it" in words(others)


def test_a_strangers_notebook_looks_like_none(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    stranger = browser(factories.person())

    assert stranger.get(f"/notebooks/{server.pk}").status_code == 404
    for act in ("stop", "start", "keep", "remove"):
        assert stranger.post(f"/notebooks/{server.pk}/{act}").status_code == 404


@pytest.mark.slow
def test_a_team_lead_stops_and_the_owner_starts_again_and_removes(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    mei = factories.person("Mei Chen", teams=[tenancy.team])
    Membership.objects.filter(user=mei).update(part=Membership.Part.LEAD)
    server = running(tenancy, ada, hub)
    path = f"/notebooks/{server.pk}"

    assert browser(mei).post(f"{path}/stop").headers["Location"] == path
    assert "Mei Chen stopped it. It is being stopped now." in words(
        browser(ada).get(path)
    )
    worked_on(server)
    shown = browser(ada).get(path)
    assert (
        "Mei Chen stopped it. It uses no GPUs now; those that Vision holds cost, used or not, until they are given "
        "back or end."
    ) in words(shown)
    assert "They use no GPUs" in words(browser(ada).get(PAGE))
    assert buttons(shown) == {"Start again", "Start with these", "Remove"}
    assert browser(mei).post(f"{path}/start").status_code == 403
    assert browser(ada).post(f"{path}/start").headers["Location"] == path
    server.refresh_from_db()
    assert server.state == State.STARTING
    actions.stop(server.pk, by=ada, now=timezone.now())
    worked_on(server)
    assert browser(ada).post(f"{path}/remove").headers["Location"] == PAGE
    assert not Server.objects.exists()


@pytest.mark.parametrize("drains", [True, False])
def test_a_maintenance_that_stops_a_notebook_stands_among_what_comes(
    drains: bool, tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = launch(tenancy, ada)
    starts = timezone.now() + timedelta(hours=1)
    Cluster.objects.update(
        maintenance_starts_at=starts,
        maintenance_ends_at=starts + timedelta(hours=4),
        maintenance_drains=drains,
    )
    shown = browser(ada).get(f"/notebooks/{server.pk}")
    coming = [
        one["at"] for one in shown.context["story"] if "maintenance" in one["title"]
    ]
    assert coming == ([starts] if drains else [])
    becomes = "stops what runs then" if drains else "it can be interrupted"
    assert becomes in shown.context["maintained"]
    Cluster.objects.update(maintenance_starts_at=timezone.now())
    during = browser(ada).get(f"/notebooks/{server.pk}")
    assert during.context["maintained"] == ""


@pytest.mark.slow
def test_a_start_that_waits_says_why_as_a_run_does(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    copying = Copying(tenancy.cluster)
    copying.begin(*queue_of(tenancy))
    server = launch(tenancy, ada)
    path = f"/notebooks/{server.pk}"
    assert "The portal asks the hub to start it." in words(browser(ada).get(path))
    worked_on(server)
    assert "makes its pod" in words(browser(ada).get(path))

    copying.put(pod(server))
    copying.put(workload(server))

    shown = browser(ada).get(path)
    told = Caller(ada).get(f"notebooks/{server.pk}/").json()
    assert (told["why"]["position"], told["why"]["outlook"]) == (0, "wait")
    assert told["why"]["what"] in words(shown)
    assert (shown.context["tone"], shown.context["word"]) == ("waiting", "Waiting")
    assert shown.context["story"][1]["title"] == "Waiting"


@pytest.mark.slow
def test_an_image_that_cannot_be_pulled_is_said_while_it_starts(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    copying = Copying(tenancy.cluster)
    copying.begin()
    server = worked_on(launch(tenancy, ada, profile="cpu"))
    waiting = {
        "state": {
            "waiting": {"reason": "ImagePullBackOff", "message": "manifest unknown"}
        }
    }
    found = pod(
        server, containerStatuses=[{"name": "notebook", "image": "x:1", **waiting}]
    )
    found["spec"] = {
        "nodeName": "node-1",
        "containers": [{"name": "notebook", "image": "x:1", "resources": {}}],
    }
    copying.put(found)

    told = Caller(ada).get(f"notebooks/{server.pk}/").json()

    assert "image" in told["why"]["what"].lower()
    assert told["why"]["what"] in words(browser(ada).get(f"/notebooks/{server.pk}"))


def test_a_pod_of_somebody_else_explains_nothing(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    copying = Copying(tenancy.cluster)
    copying.begin()
    server = worked_on(launch(tenancy, ada))
    other = pod(server)
    other["metadata"]["labels"]["hub.jupyter.org/servername"] = "nb-000000000000"
    copying.put(other)

    assert Caller(ada).get(f"notebooks/{server.pk}/").json()["why"] is None


def test_a_failed_start_says_why_and_what_next(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = worked_on(launch(tenancy, ada))
    hub.fail(server.name, "Spawn failed: ImagePullBackOff")
    worked_on(server)

    shown = browser(ada).get(f"/notebooks/{server.pk}")

    assert "It did not start. Spawn failed: ImagePullBackOff" in words(shown)
    assert "Start it again to try once more" in words(shown)


def test_an_idle_notebook_says_what_it_costs_and_is_kept_with_a_reason_the_second_time(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    earlier = timezone.now() - timedelta(minutes=50)
    Server.objects.update(
        ready_at=earlier, launched_at=earlier, created_at=earlier, active_at=earlier
    )
    reclaim_idle(now=timezone.now())
    person, path = browser(ada), f"/notebooks/{server.pk}"

    shown = person.get(path)
    assert "Ready, idle" in words(shown)
    assert "Nobody has used it for 50 min, which cost $3.06." in words(shown)
    assert person.post(f"{path}/keep").headers["Location"] == path
    server.refresh_from_db()
    assert server.keep_until is not None
    assert "Ready, idle" not in words(person.get(path))

    refused = person.post(f"{path}/keep")
    assert (refused.status_code, "Say why it is kept" in words(refused)) == (422, True)
    long = person.post(f"{path}/keep", {"reason": "x" * 201})
    assert (long.status_code, "x" * 201 in long.content.decode()) == (422, True)
    assert (
        person.post(f"{path}/keep", {"reason": "It loads the data."}).status_code == 302
    )
    assert "It loads the data." in words(person.get(path))


@pytest.mark.slow
@pytest.mark.parametrize(
    "silent",
    [
        {
            "reachable": False,
            "failures": 1,
            "message": "Away.",
            "looked_at": timezone.now(),
        },
        {"followed_at": timezone.now() - timedelta(minutes=10)},
    ],
)
def test_while_its_hub_is_silent_a_notebook_is_not_called_idle(
    tenancy: Tenancy, ada: User, hub: HubOfTests, silent: dict[str, Any]
) -> None:
    server = running(tenancy, ada, hub)
    earlier = timezone.now() - timedelta(minutes=50)
    Server.objects.update(
        ready_at=earlier, launched_at=earlier, created_at=earlier, active_at=earlier
    )
    reclaim_idle(now=timezone.now())
    person, path = browser(ada), f"/notebooks/{server.pk}"
    sentences = (
        "Nobody has used it for 50 min",
        "Stopped if nobody uses or keeps it",
        "Not used for",
    )
    assert [one in words(person.get(path)) for one in sentences] == [True] * 3

    Hub.objects.update(**silent)

    shown = words(person.get(path))
    assert [one in shown for one in sentences] == [False] * 3
    assert (
        "JupyterHub has not said whether somebody works in it. Until it does" in shown
    )
    told = Caller(ada).get(f"notebooks/{server.pk}/").json()
    assert told["stops_when_idle"] is None
    assert told["idle_unknown_since"] == as_told(Hub.objects.get().followed_at)


@pytest.mark.slow
def test_a_platform_lead_exempts_a_notebook_and_ends_that_on_its_page_or_the_hubs(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    person, priya = browser(ada), browser(lead)
    path, hub_page = f"/notebooks/{server.pk}", f"/hubs/{tenancy.cluster.name}"
    assert "Exempt from idle stops" in buttons(priya.get(path))
    assert "Exempt from idle stops" not in buttons(person.get(path))
    assert person.get(f"{path}/exempt").status_code == 403
    until = (timezone.now() + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M")

    refused = priya.post(f"{path}/exempt", {"until": until, "reason": ""})
    assert (refused.status_code, "Say why" in words(refused)) == (422, True)
    unknown = priya.post(
        f"{path}/exempt", {"until": until, "reason": "A demo.", "for": "ever"}
    )
    assert unknown.status_code == 422
    sent = priya.post(
        f"{path}/exempt", {"until": until, "reason": "A demo for the board."}
    )
    assert sent.headers["Location"] == path
    for shown in (priya.get(path), person.get(path), priya.get(hub_page)):
        assert "A demo for the board." in words(shown)
        assert "Priya Nair" in words(shown)
    assert "End the exemption now" not in buttons(person.get(path))
    assert f"End now the exemption of {server.title}" in buttons(priya.get(hub_page))
    [told] = Caller(lead).get(f"hubs/{tenancy.cluster.name}/").json()["exemptions"]
    assert (told["notebook"], told["reason"]) == (server.pk, "A demo for the board.")

    assert person.post(f"{path}/exempt/end").status_code == 403
    assert priya.post(f"{path}/exempt/end").headers["Location"] == path
    for shown in (priya.get(path), priya.get(hub_page)):
        assert "A demo for the board." not in words(shown)


def test_the_api_keeps_a_notebook_for_longer_and_ends_that(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    where, caller = f"notebooks/{server.pk}/", Caller(lead)
    until = as_told(timezone.now() + timedelta(days=2))

    kept = caller.post(f"{where}keep/", {"reason": "A demo.", "until": until}).json()

    assert kept["exemption"]["reason"] == "A demo."
    assert (kept["exemption"]["until"], kept["keep_until"]) == (until, until)
    assert Caller(ada).delete(f"{where}exemption/").status_code == 403
    assert caller.delete(f"{where}exemption/").json()["exemption"] is None
    assert caller.get(where).json()["keep_until"] is None


@pytest.mark.slow
def test_what_comes_is_said_with_its_moments(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    assert server.ready_at is not None
    told = Caller(ada).get(f"notebooks/{server.pk}/").json()
    held = tenancy.allocations.get()

    assert told["ends_at"] == as_told(server.ready_at + timedelta(hours=12))
    assert told["stops_when_idle"] == as_told(server.ready_at + timedelta(hours=1))
    assert told["gpus_go_back_at"] == as_told(held.kept_until)
    Hub.objects.update(reclaim=Reclaim.WARN)
    assert Caller(ada).get(f"notebooks/{server.pk}/").json()["stops_when_idle"] is None
    tenancy.allocations.update(notebook=server)
    assert Caller(ada).get(f"notebooks/{server.pk}/").json()[
        "gpus_go_back_at"
    ] == as_told(held.kept_until)


def as_told(at: Any) -> str:
    return str(at.isoformat().replace("+00:00", "Z"))


def test_a_hub_that_is_away_is_said_where_it_matters(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    Hub.objects.update(
        reachable=False,
        message="It does not answer.",
        failures=1,
        looked_at=timezone.now(),
    )

    for path in (PAGE, f"/notebooks/{server.pk}"):
        assert "The JupyterHub did not answer when the portal asked on" in words(
            browser(ada).get(path)
        )
    told = Caller(ada).get(f"notebooks/{server.pk}/").json()
    assert (told["hub_reachable"], told["state"]) == (False, "ready")


@pytest.mark.slow
@pytest.mark.parametrize("reason", list(StopReason))
def test_every_end_has_a_sentence(
    tenancy: Tenancy, ada: User, hub: HubOfTests, reason: StopReason
) -> None:
    server = running(tenancy, ada, hub)
    by = ada if reason is StopReason.PERSON else None
    Server.objects.update(
        state=State.STOPPED,
        stop_reason=reason,
        stopped_by=by,
        stopped_at=timezone.now(),
        ready_at=None,
    )

    said = Caller(ada).get(f"notebooks/{server.pk}/").json()["sentence"]

    assert said.startswith("Ada Okafor stopped it." if by else reason.words)
    assert said.endswith("What you saved on its volumes stays.")


@pytest.mark.slow
def test_home_has_the_last_choice_in_one_click(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    person = browser(ada)
    link = opens(person.get("/"))
    assert link is not None
    assert link.attrs["href"] == f"{hub.address}{server.path}"

    actions.stop(server.pk, by=ada, now=timezone.now())
    worked_on(server)

    shown = person.get("/")
    assert opens(shown) is None
    [start] = [
        one
        for one in page(shown).walk()
        if one.attrs.get("action") == f"/notebooks/{server.pk}/start"
    ]
    assert (
        person.post(start.attrs["action"]).headers["Location"]
        == f"/notebooks/{server.pk}"
    )
    server.refresh_from_db()
    assert server.state == State.STARTING


def retired(slug: str, *, by: User, successor: str = "") -> None:
    """A profile that people can choose no more."""
    desk.deprecate(slug, by=by, reason="Its image is too old", successor=successor)
    desk.retire(slug, by=by, reason="Its image is too old", successor=successor)


def published(text: str, *, by: User) -> None:
    """A profile that people can choose."""
    version = desk.save(text, by=by, now=timezone.now())
    desk.publish(version.profile.slug, by=by)


@pytest.mark.slow
@pytest.mark.parametrize("successor", ["a200", ""])
def test_a_stopped_notebook_of_a_retired_profile_offers_the_successor_or_the_other_profiles(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests, successor: str
) -> None:
    server = running(tenancy, ada, hub)
    published(A100.replace("slug: a100", "slug: a200"), by=lead)
    retired("a100", by=lead, successor=successor)
    person, caller, path = browser(ada), Caller(ada), f"/notebooks/{server.pk}"
    # One that runs goes on.
    assert "retired" not in words(person.get(path))
    actions.stop(server.pk, by=ada, now=timezone.now())
    worked_on(server)
    label = "Launch a200" if successor else "Choose another profile"
    sentence = "Its profile was retired: Its image is too old. "
    sentence += "Launch “a200” instead." if successor else "Choose another one."
    href = f"{PAGE}?place={tenancy.pk}#{successor or 'launch'}"

    for where in (path, PAGE, "/"):
        shown = page(person.get(where))
        links = [
            one
            for one in shown.walk()
            if one.tag == "a" and one.attrs.get("href") == href
        ]
        assert [one.words.startswith(label) for one in links] == [True]
        assert not [
            one for one in shown.walk() if one.attrs.get("action") == f"{path}/start"
        ]
        assert not [
            one
            for one in shown.walk()
            if one.attrs.get("formaction") == f"{path}/start"
        ]
    assert sentence in words(person.get(path))
    told = caller.get(f"notebooks/{server.pk}/").json()
    assert (told["cannot_start"], told["successor"]) == (sentence, successor)
    refused = caller.post(f"notebooks/{server.pk}/start/").json()
    assert (refused["code"], refused["detail"]) == ("profile_retired", sentence)
    assert "Launch" not in buttons(browser(lead).get(path))


def test_the_successor_of_a_successor_is_offered(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests
) -> None:
    server = launch(tenancy, ada)
    for slug in ("a200", "a300"):
        published(A100.replace("slug: a100", f"slug: {slug}"), by=lead)
    retired("a100", by=lead, successor="a200")
    retired("a200", by=lead, successor="a300")
    actions.stop(server.pk, by=ada, now=timezone.now())
    worked_on(server)

    assert Caller(ada).get(f"notebooks/{server.pk}/").json()["successor"] == "a300"


def test_the_api_launches_once_and_says_the_field_at_fault(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests
) -> None:
    caller, where = Caller(ada), f"places/{tenancy.pk}/notebooks/"
    body = {"profile": "a100", "options": {"image": "base"}, "title": "Explore"}

    first, again = (
        caller.post(where, body, key="mine"),
        caller.post(where, body, key="mine"),
    )

    assert (first.status_code, again.status_code) == (201, 201), first.content
    assert again.headers["Idempotency-Replayed"] == "true"
    assert first.headers["Location"] == f"/api/v1/notebooks/{first.json()['id']}/"
    assert first.json() == again.json()
    assert (first.json()["state"], first.json()["sentence"]) == (
        "starting",
        "The portal asks the hub to start it.",
    )
    assert (
        caller.post(where, body, key=None).json()["code"] == "idempotency_key_missing"
    )
    refused = caller.post(where, body | {"options": {"size": "nine"}})
    assert (refused.status_code, refused.json()["code"]) == (422, "no_such_choice")
    assert refused.json()["errors"][0]["pointer"] == "/options/size"
    assert Caller(factories.person()).post(where, body).status_code == 404
    assert Caller(lead).post(where, body).status_code == 403
    assert Server.objects.count() == 1


@pytest.mark.slow
def test_the_api_stops_starts_keeps_and_removes(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    caller, where = Caller(ada), f"notebooks/{server.pk}/"
    assert caller.get(where).json()["address"] == f"{hub.address}{server.path}"

    kept = caller.post(f"{where}keep/")
    assert kept.json()["kept_times"] == 1
    assert caller.post(f"{where}keep/").json()["code"] == "reason_missing"
    later = {"reason": "A demo.", "until": as_told(timezone.now() + timedelta(days=2))}
    assert caller.post(f"{where}keep/", later).status_code == 403
    assert caller.delete(where).json()["code"] == "is_running"
    assert caller.post(f"{where}stop/").json()["state"] == "stopping"
    worked_on(server)
    assert caller.get(where).json()["stop_reason"] == "person"
    assert caller.post(f"{where}start/").json()["state"] == "starting"
    caller.post(f"{where}stop/")
    worked_on(server)
    assert caller.delete(where).status_code == 204
    assert caller.get(where).status_code == 404


@pytest.mark.slow
def test_the_api_lists_ones_teams_at_one_cost(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    mei = factories.person("Mei Chen", teams=[tenancy.team])
    mine = running(tenancy, ada, hub)
    for number in range(8):
        launch(tenancy, mei, profile="cpu", key=f"key-{number}")
    caller = Caller(ada)
    with CaptureQueriesContext(connection) as captured:
        rows = caller.get("notebooks/?limit=5").json()
    assert len(rows["results"]) == 5
    assert len(captured) <= 6
    following = rows["next"].partition("/api/v1/")[2]
    assert len(caller.get(following).json()["results"]) == 4

    assert [
        one["id"] for one in caller.get("notebooks/?mine=true").json()["results"]
    ] == [mine.pk]
    assert [
        one["id"] for one in caller.get("notebooks/?state=ready").json()["results"]
    ] == [mine.pk]
    assert caller.get("notebooks/?live=false&team=vision").json()["results"] == []
    assert Caller(factories.person()).get("notebooks/").json()["results"] == []
    assert (
        len(
            Caller(factories.person("", Role.AUDITOR))
            .get("notebooks/")
            .json()["results"]
        )
        == 9
    )
    # Whose it is opens it.
    assert [
        one["address"]
        for one in Caller(mei).get("notebooks/?state=ready").json()["results"]
    ] == [""]


@pytest.mark.parametrize("many", [1, 9])
def test_the_page_asks_as_often_for_many_servers_as_for_few(
    tenancy: Tenancy, ada: User, hub: HubOfTests, many: int
) -> None:
    for number in range(many):
        launch(tenancy, ada, profile="cpu", key=f"key-{number}")
    person = browser(ada)
    with CaptureQueriesContext(connection) as captured:
        person.get(PAGE)
    assert (
        sum(
            one["sql"].startswith('SELECT "notebooks_notebookserver"')
            for one in captured
        )
        == 2
    )
    assert len(captured) <= 16


@pytest.mark.parametrize(
    ("minutes", "said"),
    [
        (45, "45 min"),
        (60, "1 h"),
        (90, "90 min"),
        (1_440, "24 h"),
        (2_880, "2 days"),
        (2_940, "49 h"),
    ],
)
def test_lengths_are_exact(minutes: int, said: str) -> None:
    assert length(minutes) == said


def test_what_happens_to_an_unused_notebook_is_said_before_it_is_launched() -> None:
    document = read(A100)
    assert idle_words(document, Reclaim.ON).startswith(
        "Unused for 1 h, it is stopped. You are told 15 min"
    )
    assert idle_words(document, Reclaim.WARN).startswith(
        "Unused for 1 h, you are told."
    )
    assert (
        idle_words(document, Reclaim.OFF)
        == "It goes on, and keeps its GPUs, until you stop it."
    )
    assert (
        limit_words(document) == "12 h at most, then it is stopped. Its volumes stay."
    )


def test_a_notebook_without_gpus_goes_on_and_nobody_says_that_it_costs() -> None:
    document = read(CPU)
    assert idle_words(document, Reclaim.ON) == "It goes on until you stop it."
    assert limit_words(document) == "As long as you leave it."


@pytest.mark.slow
def test_a_card_answers_for_what_was_chosen(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    person = Client()
    person.force_login(ada)
    usual = words(person.get(PAGE))
    assert "too few A100" not in usual
    larger = words(person.get(f"{PAGE}?profile=a100&options.size=four"))
    assert "Your team holds too few A100" in larger
    assert "It takes 4 × A100; this namespace can have" in larger
    # What there is not is answered as usual, and refused when it is sent.
    for query in (
        "profile=a100&options.size=nine",
        "profile=a100&options.nothing=1",
        "profile=none",
    ):
        assert "too few A100" not in words(person.get(f"{PAGE}?{query}"))


def test_a_name_is_known_as_it_is_and_as_older_spawners_escape_it() -> None:
    assert label_values("nb-1a") == {"nb-1a", "nb-2d1a"}
    assert label_values("Ä.b") == {"Ä.b", "-c3-84-2eb"}


def test_a_cluster_that_is_silent_is_said_before_a_notebook_is_launched_there(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    said = f"{tenancy.cluster.title} has said nothing since"
    assert said not in words(browser(ada).get(PAGE))
    Feed.objects.create(
        cluster=tenancy.cluster, kind="Pod", silent_since=timezone.now()
    )
    shown = words(browser(ada).get(PAGE))
    assert said in shown
    assert "It can start at once" not in shown
    assert "It starts when the cluster answers again" in shown
    [told, *_] = Caller(ada).get(f"places/{tenancy.pk}/profiles/").json()["results"]
    assert told["answer"]["sentence"] == "It starts when the cluster answers again"


def test_a_ready_notebook_says_what_takes_its_gpus_and_that_such_work_waits(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = running(tenancy, ada, hub)
    shown = words(browser(ada).get(f"/notebooks/{server.pk}"))
    assert goes_first_words(0) in shown
    assert "Vision pays for those that it holds, used or not." in shown
    assert "waits. As soon as" not in shown
    waits(tenancy, gpus=2, priority=1_000)
    shown = words(browser(ada).get(f"/notebooks/{server.pk}"))
    assert (
        "1 job of the team with a higher priority waits. As soon as these GPUs are enough for it, the queue takes "
        "them and the notebook is stopped: save what is in memory."
    ) in shown
