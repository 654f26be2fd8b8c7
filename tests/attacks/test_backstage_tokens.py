"""A token of Backstage lets in the person it is for, as one that asks, and nobody else."""

from unittest.mock import patch

from django.test import Client
from pytest_django import Settings

from accounts.models import User
from audit.events import Kind
from audit.models import Event
from sandbox.backstage import SandboxBackstage
from tests.attacks.browsing import state_of_everything
from tests.attacks.test_tokens import everything_that_decides_or_sets
from tests.backstages import BackstageCaller, named
from tests.calling import Caller
from tests.world import World


def test_a_person_calls_the_api_from_backstage_as_themselves(
    here: World, backend: SandboxBackstage
) -> None:
    caller = BackstageCaller(backend, here.people["member"])
    answer = caller.get("me/")
    assert (answer.status_code, answer.json()["name"]) == (200, "Ada Okafor")


def test_it_decides_and_sets_nothing_whatever_its_person_may(
    here: World, backend: SandboxBackstage
) -> None:
    caller = BackstageCaller(backend, here.people["platform_lead"])
    caller.get("me/")
    before = state_of_everything()
    for method, path, body in everything_that_decides_or_sets(here):
        answer = caller.send(method, path, body, **{"If-Match": '"1"'})
        assert answer.status_code == 403, path
    assert state_of_everything() == before


def test_it_makes_no_token_of_the_portal(
    here: World, backend: SandboxBackstage
) -> None:
    caller = BackstageCaller(backend, here.people["member"])
    answer = caller.post("tokens/", {"name": "child", "scope": "ask", "days": 1})
    assert answer.status_code == 403


def test_where_it_may_only_read_it_asks_for_nothing(
    here: World, backend: SandboxBackstage, settings: Settings
) -> None:
    settings.ENV = settings.ENV.model_copy(update={"backstage_scope": "read"})
    caller = BackstageCaller(backend, here.own.asker)
    assert caller.get("requests/").status_code == 200
    answer = caller.post(f"requests/{here.own.waiting.pk}/withdraw/")
    assert answer.status_code == 403


def refusal(caller: Caller) -> str:
    """Why somebody is not let in."""
    answer = caller.get("me/")
    assert answer.status_code == 401, answer.content
    return str(answer.json()["detail"])


def test_a_plugin_that_calls_for_nobody_is_not_let_in(
    backend: SandboxBackstage, here: World
) -> None:
    assert "calls for nobody" in refusal(BackstageCaller(backend, None))


def test_who_is_not_in_the_catalog_is_told_so(
    here: World, backend: SandboxBackstage
) -> None:
    caller = BackstageCaller(backend, here.people["member"])
    backend.users.clear()
    assert "no user:default/ada.okafor" in refusal(caller)


def test_who_was_never_here_is_asked_to_sign_in_once(
    here: World, backend: SandboxBackstage
) -> None:
    member = here.people["member"]
    User.objects.filter(pk=member.pk).update(signed_in_at=None)
    assert "Sign in to the portal once" in refusal(BackstageCaller(backend, member))


def test_an_account_that_is_blocked_is_not_let_in(
    here: World, backend: SandboxBackstage
) -> None:
    member = here.people["member"]
    caller = BackstageCaller(backend, member)
    assert caller.get("me/").status_code == 200
    User.objects.filter(pk=member.pk).update(is_active=False)
    assert "Sign in to the portal once" in refusal(caller)


def test_another_plugin_than_those_of_the_settings_is_not_let_in(
    here: World, backend: SandboxBackstage
) -> None:
    caller = BackstageCaller(backend, here.people["member"], sub="catalog")
    assert "takes no calls of this plugin" in refusal(caller)


def test_a_portal_that_knows_no_backstage_takes_none_of_its_tokens(
    here: World, backend: SandboxBackstage, settings: Settings
) -> None:
    caller = BackstageCaller(backend, here.people["member"])
    settings.ENV = settings.ENV.model_copy(update={"backstage_url": ""})
    assert "connected with no Backstage" in refusal(caller)
    assert backend.asked == []


def test_a_backstage_that_is_away_is_waited_for(
    here: World, backend: SandboxBackstage
) -> None:
    backend.is_away = True
    answer = BackstageCaller(backend, here.people["member"]).get("me/")
    assert (answer.status_code, answer.json()["code"]) == (503, "backstage_away")


def test_a_catalog_that_does_not_let_the_portal_read_is_no_fault_of_the_token(
    here: World, backend: SandboxBackstage
) -> None:
    caller = BackstageCaller(backend, here.people["member"])
    with patch("sandbox.backstage.CATALOG_TOKEN", "another"):
        answer = caller.get("me/")
    assert (answer.status_code, answer.json()["code"]) == (
        502,
        "outside_system_refused",
    )


def test_the_catalog_is_asked_once_for_a_person(
    here: World, backend: SandboxBackstage
) -> None:
    caller = BackstageCaller(backend, here.people["member"])
    for _ in range(3):
        assert caller.get("me/").status_code == 200
    assert sum("catalog" in path for path in backend.asked) == 1


def test_a_platform_lead_sees_whether_it_is_heard_and_why_not(
    here: World, backend: SandboxBackstage
) -> None:
    client = Client()
    client.force_login(here.people["platform_lead"])
    assert "It has not called yet." in client.get("/directory").content.decode()
    BackstageCaller(backend, here.people["member"]).get("me/")
    refusal(BackstageCaller(backend, None))
    page = client.get("/directory").content.decode()
    assert "scaffolder for user:default/ada.okafor" in page
    assert "calls for nobody" in page
    told = Caller(here.people["platform_lead"]).get("directory/").json()["backstage"]
    assert told["call"]["words"] == "scaffolder for user:default/ada.okafor"


def test_who_is_not_let_in_after_all_was_refused_and_has_not_called(
    here: World, backend: SandboxBackstage
) -> None:
    member, lead = here.people["member"], Caller(here.people["platform_lead"])
    User.objects.filter(pk=member.pk).update(signed_in_at=None)
    refusal(BackstageCaller(backend, member))
    told = lead.get("directory/").json()["backstage"]
    assert told["call"] is None
    assert "Sign in to the portal once" in told["refusal"]["words"]


def test_what_is_asked_for_from_backstage_is_the_persons_in_the_audit_log(
    here: World, backend: SandboxBackstage
) -> None:
    asker = here.own.asker
    caller = BackstageCaller(backend, asker)
    assert caller.post(f"requests/{here.own.waiting.pk}/withdraw/").status_code == 200
    event = Event.objects.filter(kind=Kind.REQUEST_WITHDRAWN).latest("seq")
    assert event.actor_name == asker.name


def test_two_people_are_never_taken_for_each_other(
    here: World, backend: SandboxBackstage
) -> None:
    for key in ("member", "outsider", "member"):
        person = here.people[key]
        assert BackstageCaller(backend, person).get("me/").json()["oid"] == str(
            person.oid
        )
    assert named(backend, here.people["outsider"]) in backend.users
