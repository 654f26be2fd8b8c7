"""Variables of notebooks from Secrets by page and API: written on the card, kept, shown by name, explained."""

import pytest
from django.utils import timezone

from accounts.models import User
from notebooks.models import NotebookServer as Server
from notebooks.servers import actions
from notebooks.servers.missing_secrets import GIVEN_UP, MAKE_IT
from notebooks.servers.states import State
from provisioning.models import Tenancy
from tests.calling import Caller
from tests.notebooks.hub_server import HubOfTests
from tests.notebooks.test_notebook_secrets import MISSING, TOKEN, WANDB
from tests.notebooks.test_notebook_secrets import launch as launched
from tests.notebooks.test_servers import (
    ada,
    hub,
    hub_server,
    lead,
    standing,
    tenancy,
    worked_on,
)
from tests.workloads.copying import Copying
from tests.workloads.test_notebook_pages import (
    PAGE,
    browser,
    form,
    page,
    pod,
    queue_of,
    words,
)

pytestmark = pytest.mark.django_db
__all__ = ["ada", "hub", "hub_server", "lead", "standing", "tenancy"]
WRITTEN = "HF_TOKEN=huggingface:token\nWANDB_API_KEY=wandb:key"
NAMES = "HF_TOKEN from huggingface, WANDB_API_KEY from wandb"


def test_a_card_takes_them_and_the_notebooks_page_shows_their_names(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    person = browser(ada)
    typed = form(person.get(PAGE), "a100") | {"secrets": f"\n {WRITTEN}\r\n"}
    first, again = person.post(PAGE, typed), person.post(PAGE, typed)
    server = Server.objects.get()
    assert first.headers["Location"] == again.headers["Location"]
    assert server.secrets == [TOKEN.as_json, WANDB.as_json]
    assert NAMES in words(person.get(f"/notebooks/{server.pk}"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("secrets", "said"),
    [
        ("HF_TOKEN=hf_0123456789", "is not of the form NAME=secret:key"),
        ("JUPYTERHUB_API_TOKEN=a:b", "is set by JupyterHub"),
        ("PATH=a:b", "so a notebook cannot set it"),
        (f"{WRITTEN}\n{WRITTEN}", "HF_TOKEN is given twice"),
        ("A=Huggingface:token", "no name of a Secret"),
    ],
)
def test_what_is_refused_stands_at_the_field_unfolded_with_what_was_written(
    tenancy: Tenancy, ada: User, secrets: str, said: str
) -> None:
    person = browser(ada)
    typed = form(person.get(PAGE), "a100") | {"secrets": secrets}

    answer = person.post(PAGE, typed)

    assert answer.status_code == 422
    assert said in words(answer)
    whole = [*page(answer).walk()]
    unfolded = [one for one in whole if one.tag == "details" and "open" in one.attrs]
    [field] = [
        each
        for one in unfolded
        for each in one.walk()
        if each.attrs.get("name") == "secrets"
    ]
    assert field.attrs["aria-invalid"] == "true"
    assert field.words == " ".join(secrets.split())
    assert not Server.objects.exists()


def test_the_api_takes_them_and_gives_the_names_back(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    caller, where = Caller(ada), f"places/{tenancy.pk}/notebooks/"
    body = {"profile": "cpu", "secrets": [TOKEN.as_json]}
    made = caller.post(where, body, key="mine")
    assert made.status_code == 201, made.content
    assert made.json()["secrets"] == [TOKEN.as_json]
    found = caller.get(f"notebooks/{made.json()['id']}/").json()
    assert found["secrets"] == [TOKEN.as_json]
    plain = caller.post(where, {"profile": "cpu"}, key="plain")
    assert plain.json()["secrets"] == []

    wrong = {**TOKEN.as_json, "variable": "JPY_API_TOKEN"}
    refused = caller.post(where, {"profile": "cpu", "secrets": [wrong]}, key="wrong")
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_secret")
    assert refused.json()["errors"][0]["pointer"] == "/secrets"
    valued = {**TOKEN.as_json, "value": "x"}
    unknown = caller.post(where, {"profile": "cpu", "secrets": [valued]}, key="valued")
    assert unknown.json()["errors"][0]["pointer"] == "/secrets/0/value"
    many = caller.post(where, {"profile": "cpu", "secrets": [TOKEN.as_json] * 21})
    assert many.json()["errors"][0]["pointer"] == "/secrets"
    assert Server.objects.count() == 2


def stopped(tenancy: Tenancy, ada: User) -> Server:
    """A notebook with a variable that does not run."""
    server = worked_on(launched(tenancy, ada, TOKEN))
    actions.stop(server.pk, by=ada, now=timezone.now())
    return worked_on(server)


@pytest.mark.slow
def test_a_stopped_notebook_starts_again_with_the_variables_that_its_page_has(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests
) -> None:
    server = stopped(tenancy, ada)
    person, where = browser(ada), f"/notebooks/{server.pk}/start"
    shown = page(person.get(f"/notebooks/{server.pk}"))
    [field] = [one for one in shown.walk() if one.attrs.get("name") == "secrets"]
    assert field.words == "HF_TOKEN=huggingface:token"

    refused = person.post(where, {"secrets": "HF_TOKEN=hf_0123456789"})
    assert refused.status_code == 422
    assert "is not of the form NAME=secret:key" in words(refused)
    refused = person.post(where, {"secrets": "PATH=a:b"})
    assert refused.status_code == 422
    assert "so a notebook cannot set it" in words(refused)
    assert "PATH=a:b" in words(refused)
    assert browser(lead).post(where, {"secrets": WRITTEN}).status_code == 403

    sent = person.post(where, {"secrets": WRITTEN})
    assert sent.headers["Location"] == f"/notebooks/{server.pk}"
    server.refresh_from_db()
    assert (server.state, server.secrets) == (
        State.STARTING,
        [TOKEN.as_json, WANDB.as_json],
    )
    runs = person.post(where, {"secrets": ""}, follow=True)
    assert "Stop it first" in words(runs)


@pytest.mark.slow
def test_the_api_starts_it_again_with_others_or_with_those_that_it_has(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = stopped(tenancy, ada)
    caller, where = Caller(ada), f"notebooks/{server.pk}/"
    again = caller.post(f"{where}start/").json()
    assert (again["state"], again["secrets"]) == ("starting", [TOKEN.as_json])
    running = caller.post(f"{where}start/", {"secrets": []})
    assert (running.status_code, running.json()["code"]) == (409, "is_running")
    caller.post(f"{where}stop/")
    worked_on(server)
    wrong = [{**TOKEN.as_json, "secret": "A"}]
    refused = caller.post(f"{where}start/", {"secrets": wrong}).json()
    assert refused["errors"][0]["pointer"] == "/secrets"
    other = caller.post(f"{where}start/", {"secrets": [WANDB.as_json]}).json()
    assert other["secrets"] == [WANDB.as_json]


@pytest.mark.slow
def test_a_missing_secret_is_explained_with_what_a_notebook_does_about_it(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    copying = Copying(tenancy.cluster)
    copying.begin(*queue_of(tenancy))
    server = worked_on(launched(tenancy, ada, TOKEN))
    stuck = pod(
        server,
        containerStatuses=[
            {
                "name": "notebook",
                "image": "lab:1",
                "state": {
                    "waiting": {
                        "reason": "CreateContainerConfigError",
                        "message": 'secret "huggingface" not found',
                    }
                },
            }
        ],
    )
    stuck["spec"] |= {"schedulingGates": [], "nodeName": "cpu-0"}
    stuck["metadata"]["name"] = f"jupyter-ada--{server.name}---0a1b2c3d"
    copying.put(stuck)
    shown = words(browser(ada).get(f"/notebooks/{server.pk}"))
    assert MISSING in shown
    assert MAKE_IT in shown
    assert "run it again" not in shown
    why = Caller(ada).get(f"notebooks/{server.pk}/").json()["why"]
    assert (why["code"], why["what"], why["do"]) == (
        "secret_not_there",
        MISSING,
        MAKE_IT,
    )
    team = tenancy.team.slug
    listed = words(browser(ada).get(f"/teams/{team}/work"))
    assert MAKE_IT in listed
    assert "run it again" not in listed
    [line] = Caller(ada).get(f"work/{team}/").json()["work"]
    assert (line["why"]["do"], line["why"]["step"]) == (MAKE_IT, None)


def test_one_that_was_given_up_sends_nobody_to_the_platform_team(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = worked_on(launched(tenancy, ada, TOKEN))
    Server.objects.filter(pk=server.pk).update(
        state=State.FAILED,
        message=f"{MISSING} {GIVEN_UP}",
        secret_missed_at=timezone.now(),
        stopped_at=timezone.now(),
    )
    shown = words(browser(ada).get(f"/notebooks/{server.pk}"))
    assert f"It did not start. {MISSING} {GIVEN_UP}" in shown
    assert "platform team" not in shown
    assert "Change its variables from Secrets" in shown


def test_one_that_failed_for_another_reason_forgets_that_a_secret_was_missed(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = worked_on(launched(tenancy, ada, TOKEN))
    Server.objects.filter(pk=server.pk).update(secret_missed_at=timezone.now())
    hub.fail(server.name, "The hub restarted.")
    server = worked_on(server)
    assert (server.state, server.secret_missed_at) == (State.FAILED, None)
    shown = words(browser(ada).get(f"/notebooks/{server.pk}"))
    assert "send what it says above to your platform team" in shown


def test_it_is_explained_before_the_copy_has_its_pod(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = worked_on(launched(tenancy, ada, TOKEN))
    Server.objects.filter(pk=server.pk).update(
        message=MISSING, secret_missed_at=timezone.now()
    )
    shown = words(browser(ada).get(f"/notebooks/{server.pk}"))
    assert f"{MISSING} {MAKE_IT}" in shown
    assert "Given up unless its Secret is there" in shown
