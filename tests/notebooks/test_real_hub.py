"""A real JupyterHub with KubeSpawner: what its form and API may start, and what the portal's connector sees of it."""

import html
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from accounts.models import Membership
from accounts.roles import Role
from connectors.errors import PermanentError, TemporaryError
from connectors.jupyterhub import JupyterHub
from fleet.models import Flavor
from notebooks.hubs import actions
from notebooks.models import NotebookServer
from notebooks.servers import actions as servers
from notebooks.servers.room import is_for_room
from provisioning.desired.variables import SecretVariable
from tests import factories
from tests.notebooks import documents
from tests.notebooks.documents import a100, cpu
from tests.notebooks.hubs import hub as connected
from tests.notebooks.real_hub import (
    ADA,
    BEN,
    OTHER,
    TEAM,
    PersonAtHub,
    RealHub,
    real_hub,
    usual,
)
from tests.notebooks.test_hub_profiles import GPU, offer, standing
from tests.services.process import wait_until

pytestmark = pytest.mark.slow
MANY = 30
NO_SECRET = 'secret "huggingface" not found'
A100, CPU = f"a100-1--{TEAM}", f"cpu--{TEAM}"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealHub]:
    with real_hub(tmp_path_factory.mktemp("hub")) as made:
        yield made


@pytest.fixture
def hub(running: RealHub) -> Iterator[RealHub]:
    usual(running)
    running.api().ensure_user(ADA)
    yield running
    running.portal.come_back()
    api = running.api()
    for one in api.servers():
        wait_until(partial(api.stop, one.username, one.name), what="its end")
    wait_until(lambda: not running.pods(), what="no pod")


@pytest.fixture
def ada(hub: RealHub) -> Iterator[PersonAtHub]:
    person = hub.person(ADA)
    yield person
    person.close()


def test_a_server_starts_in_the_teams_namespace_as_its_profile_says(
    hub: RealHub,
) -> None:
    api = hub.api()
    assert not api.start(
        ADA, "nb-1", title="Ada's", options={"profile": A100, "size": "two"}
    )
    server = hub.wait_ready("nb-1")
    [pod] = hub.pods()
    labels, container = pod["metadata"]["labels"], pod["spec"]["containers"][0]
    assert labels["kueue.x-k8s.io/queue-name"] == "default"
    assert (labels["team"], labels["quartermaster.io/team"]) == ("vision", "vision")
    assert container["resources"]["requests"] == container["resources"]["limits"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "2"
    assert pod["spec"]["nodeSelector"] == {"accelerator": "nvidia-a100"}
    taint = {"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
    assert taint in pod["spec"]["tolerations"]
    assert "hub.jupyter.org/dedicated" in [
        one["key"] for one in pod["spec"]["tolerations"]
    ]
    assert (server.title, server.pending, server.is_stopped) == ("Ada's", "", False)
    assert server.options == {"profile": A100, "size": "two"}
    assert (server.pod, server.path) == (pod["metadata"]["name"], f"/user/{ADA}/nb-1/")
    assert server.started_at is not None
    assert server.started_at.tzinfo is not None


def test_its_link_opens_a_page_and_the_hub_learns_that_it_is_used(
    hub: RealHub, ada: PersonAtHub
) -> None:
    hub.api().start(ADA, "nb-1", title="", options={"profile": CPU})
    server = hub.wait_ready("nb-1")
    before = server.active_at
    page = ada.get(server.path)
    assert page.status_code == 200
    assert "the sandbox's stand-in for Jupyter" in page.text
    assert hub.pods()[0]["metadata"]["name"] in page.text
    wait_until(lambda: hub.server("nb-1").active_at != before, what="its activity")


def test_people_are_known_by_their_object_id_and_choose_in_the_hubs_own_form(
    hub: RealHub, ada: PersonAtHub
) -> None:
    assert ada.username == ADA
    forget_the_test_before(hub)
    form = ada.get(f"/hub/spawn/{ADA}/own")
    assert "1 × A100" in form.text
    answer = ada.spawn("own", {"profile": A100, f"profile-option-{A100}--image": "jax"})
    assert answer.status_code == 200, answer.text
    assert hub.wait_ready("own").options == {"profile": A100, "image": "jax"}
    [pod] = hub.pods()
    assert (
        pod["spec"]["containers"][0]["image"] == "registry.example.com/notebook/jax:0.9"
    )
    assert {"username": ADA, "object_id": ADA, "server": "own"} in hub.portal.asked


REFUSED: dict[str, tuple[dict[str, str], int, str]] = {
    "a profile of somebody else": (
        {"profile": f"a100-1--{OTHER}"},
        403,
        f"The profile “a100-1--{OTHER}” is not offered to you.",
    ),
    "no profile of anybody": (
        {"profile": "x" * 200},
        403,
        f"The profile “{'x' * 60}…” is not offered to you.",
    ),
    "an option that there is none of": (
        {"profile": A100, "disk": "big"},
        400,
        f"The profile {A100} has no option “disk”.",
    ),
    "an option of another profile": (
        {"profile": CPU, "size": "two"},
        400,
        f"The profile {CPU} has no option “size”.",
    ),
    "a choice that there is none of": (
        {"profile": A100, "size": "nine"},
        400,
        "“Size” has no choice “nine”.",
    ),
    "a value where none may be written": (
        {"profile": A100, "size--unlisted-choice": "9"},
        400,
        "“Size” takes one of its choices only.",
    ),
    "an image from elsewhere": (
        {"profile": A100, "image--unlisted-choice": "evil.example.com/x:1"},
        400,
        "“Image” does not take “evil.example.com/x:1”.",
    ),
    "an image with a line more": (
        {
            "profile": A100,
            "image--unlisted-choice": "registry.example.com/notebook/x:1\n",
        },
        400,
        "does not take",
    ),
    "an endless value": (
        {
            "profile": A100,
            "image--unlisted-choice": "registry.example.com/notebook/" + "x" * 2_000,
        },
        400,
        "takes at most 1000 characters.",
    ),
    "a value that was announced and not written": (
        {"profile": A100, "image": "unlisted-choice"},
        400,
        "Write what you want for “Image”.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_the_hubs_api_starts_nothing_that_the_portal_would_not_allow(
    hub: RealHub, case: str
) -> None:
    options, _, sentence = REFUSED[case]
    assert sentence in refused_by_api(hub, options)


# A form has no place for the options of another profile: KubeSpawner leaves them out.
@pytest.mark.parametrize("case", [case for case in REFUSED if "option" not in case])
def test_a_forged_form_starts_nothing_either_and_says_why(
    hub: RealHub, ada: PersonAtHub, case: str
) -> None:
    options, status, sentence = REFUSED[case]
    profile = options["profile"]
    rest = {
        f"profile-option-{profile}--{name}": one
        for name, one in options.items()
        if name != "profile"
    }
    answer = ada.spawn("own", {"profile": profile, **rest})
    assert answer.status_code == status
    assert sentence in html.unescape(answer.text)
    assert hub.api().servers() == []
    assert not hub.pods()


def test_a_form_that_was_opened_before_its_profile_was_withdrawn_starts_nothing(
    hub: RealHub, ada: PersonAtHub
) -> None:
    forget_the_test_before(hub)
    assert A100 in ada.get(f"/hub/spawn/{ADA}/own").text
    hub.portal.offer(ADA, cpu())
    # The form is from memory for a minute; what starts is not.
    answer = ada.spawn("own", {"profile": A100})
    assert answer.status_code == 403
    assert (
        "is not offered to you. It may have been withdrawn meanwhile"
        in html.unescape(answer.text)
    )
    assert "is not offered to you" in refused_by_api(hub, {"profile": A100})


def test_a_forged_link_starts_nothing(hub: RealHub, ada: PersonAtHub) -> None:
    answer = ada.get(f"/hub/spawn/{ADA}/own?opt-profile=forged")
    assert answer.status_code == 403
    assert "The profile “forged” is not offered to you." in html.unescape(answer.text)
    assert hub.api().servers() == []


def test_a_person_who_left_starts_nothing(hub: RealHub, ada: PersonAtHub) -> None:
    del hub.portal.profiles[ADA]
    assert refused_by_api(hub, {"profile": CPU}).endswith("You have left the team.")
    assert refused_by_api(hub, {}).endswith(
        "No profile is offered to you. You have left the team."
    )


@pytest.mark.parametrize("how", ["errors", "another answer", "no answer in time"])
def test_while_the_portal_is_away_only_what_has_no_gpus_starts(
    hub: RealHub, how: str
) -> None:
    api = hub.api()
    api.start(ADA, "nb-0", title="", options={"profile": CPU})
    hub.wait_ready("nb-0")
    hub.portal.go_away(how)
    assert "Quartermaster does not answer" in refused_by_api(hub, {"profile": A100})
    api.start(ADA, "nb-2", title="", options={"profile": CPU})
    hub.wait_ready("nb-2")


def test_while_the_portal_is_away_people_whom_it_never_knew_start_nothing(
    hub: RealHub,
) -> None:
    hub.portal.go_away("errors")
    hub.api().ensure_user(BEN)
    assert "Quartermaster does not answer" in refused_by_api(
        hub, {"profile": CPU}, username=BEN
    )
    assert "Quartermaster does not answer" in refused_by_api(hub, {}, username=BEN)


@pytest.mark.django_db(transaction=True)
def test_the_portal_itself_allows_what_it_offers_and_nothing_after_that(
    hub: RealHub, live_server: LiveServer
) -> None:
    lead, person = (
        factories.person("Priya Nair", Role.PLATFORM_LEAD),
        factories.person("Ada Okafor"),
    )
    cluster, team = factories.cluster("training"), factories.team("Vision", by=person)
    factories.flavor(cluster, "a100", node_labels={"accelerator": "nvidia-a100"})
    factories.join(team, person)
    tenancy = standing(team, cluster, person)
    offer(lead, documents.CPU)
    offer(lead, GPU.format(slug="a100-2", gpus=2))
    key = actions.make_key(connected(cluster), by=lead, now=timezone.now())[1]
    api, username = hub.api(), str(person.oid)
    hub.namespace(tenancy.namespace)
    api.ensure_user(username)
    chosen = {"profile": f"a100-2--{tenancy.namespace}"}
    with hub.asking(live_server.url, key):
        api.start(username, "nb-1", title="", options=chosen)
        hub.wait_ready("nb-1", username)
        [pod] = hub.pods(tenancy.namespace)
        assert (
            pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "2"
        )
        assert pod["metadata"]["labels"]["quartermaster.io/profile"] == "a100-2"
        wait_until(lambda: api.stop(username, "nb-1"), what="its end")
        Membership.objects.filter(user=person).delete()
        assert "is not offered to you" in refused_by_api(hub, chosen, username)
    # Any other key is no answer, and there is nothing without GPUs that this person was offered last.
    with hub.asking(live_server.url, "qmh_00000000_withdrawn"):
        assert "Quartermaster does not answer" in refused_by_api(hub, chosen, username)


@pytest.mark.django_db(transaction=True)
def test_a_notebook_has_its_variables_from_secrets_and_no_other_server_has_them(
    hub: RealHub, live_server: LiveServer
) -> None:
    lead, person = (
        factories.person("Priya Nair", Role.PLATFORM_LEAD),
        factories.person("Ada Okafor"),
    )
    cluster, team = factories.cluster("training"), factories.team("Vision", by=person)
    factories.flavor(cluster, "a100")
    factories.join(team, person)
    tenancy = standing(team, cluster, person)
    offer(lead, f"{documents.CPU}variables: {{EPOCHS: '3'}}\n")
    key = actions.make_key(connected(cluster), by=lead, now=timezone.now())[1]
    server = servers.launch(
        tenancy.pk,
        "cpu",
        {},
        by=person,
        key="one",
        now=timezone.now(),
        secrets=[SecretVariable("HF_TOKEN", "huggingface", "token")],
    )
    api, username, name = hub.api(), server.username, server.name
    hub.namespace(tenancy.namespace)
    api.ensure_user(username)
    source = {"secretKeyRef": {"name": "huggingface", "key": "token"}}
    secrets = f"/api/v1/namespaces/{tenancy.namespace}/secrets"
    with hub.asking(live_server.url, key):
        api.start(username, name, title="", options=server.user_options)
        wait_until(
            lambda: NO_SECRET in str(hub.pods(tenancy.namespace)),
            what="its pod to wait",
        )
        assert hub.server(name, username).pending == "spawn"
        hub.kubernetes(
            "POST",
            secrets,
            {"metadata": {"name": "huggingface"}, "data": {"token": "eA=="}},
        )
        hub.wait_ready(name, username)
        [pod] = hub.pods(tenancy.namespace)
        given = environment(pod)
        assert given["HF_TOKEN"] == {"valueFrom": source}
        assert given["EPOCHS"] == {"value": "3"}
        assert given["JUPYTERHUB_USER"] == {"value": username}
        assert "HF_TOKEN" not in str(hub.server(name, username).options)
        api.start(username, "nb-2", title="", options=server.user_options)
        hub.wait_ready("nb-2", username)
        [other] = [
            one
            for one in hub.pods(tenancy.namespace)
            if one["metadata"]["uid"] != pod["metadata"]["uid"]
        ]
        assert environment(other)["EPOCHS"] == {"value": "3"}
        assert "HF_TOKEN" not in environment(other)
        # Stopped and started again, in the hub or by the portal, it is as it was.
        wait_until(lambda: api.stop(username, name), what="its end")
        api.start(username, name, title="", options=server.user_options)
        hub.wait_ready(name, username)
        assert [
            environment(one).get("HF_TOKEN")
            for one in hub.pods(tenancy.namespace)
            if one["metadata"]["uid"] != other["metadata"]["uid"]
        ] == [{"valueFrom": source}]
        # While the portal is away the hub knows what it was told last, and of this server alone.
        wait_until(lambda: api.stop(username, name), what="its end")
        hub.portal.go_away("errors")
        api.start(username, name, title="", options=server.user_options)
        hub.wait_ready(name, username)
        assert str(hub.pods(tenancy.namespace)).count("huggingface") == 1
        unknown = "nb-0123456789ab"
        api.start(username, unknown, title="", options=server.user_options)
        wait_until(lambda: api.failure(username, unknown) != "", what="its failure")
        assert "Quartermaster does not answer" in api.failure(username, unknown)


def test_refusals_never_end_the_hub(hub: RealHub) -> None:
    for _ in range(6):
        refused_by_api(hub, {"profile": "forged"})
    assert hub.api().version() == "6.1.1"


def test_a_namespace_without_room_is_said_and_never_ends_the_hub(hub: RealHub) -> None:
    path = f"/api/v1/namespaces/{TEAM}/resourcequotas"
    hard = {"hard": {"requests.nvidia.com/gpu": "0"}}
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "full"},
        "spec": hard,
    }
    hub.kubernetes("POST", path, quota)
    try:
        for _ in range(6):
            why = refused_by_api(hub, {"profile": A100})
            assert (
                f"The namespace {TEAM} has no room for this server now, by its quota full"
                in why
            )
            assert is_for_room(NotebookServer(flavor=Flavor(), gpus=2), why)
    finally:
        hub.kubernetes("DELETE", f"{path}/full")
    assert hub.api().version() == "6.1.1"
    hub.api().start(ADA, "nb-1", title="", options={"profile": A100})
    hub.wait_ready("nb-1")


def test_servers_go_on_while_the_hub_restarts_and_are_its_own_again(
    hub: RealHub, ada: PersonAtHub
) -> None:
    api, names = hub.api(), [f"nb-{number}" for number in range(MANY)]
    hub.portal.offer(ADA, cpu(cpus=0.1, memory=1))
    for name in names:
        api.start(ADA, name, title=name, options={"profile": CPU})
    before = {name: hub.wait_ready(name) for name in names}
    pods = {one["metadata"]["uid"] for one in hub.pods()}
    hub.hub.kill_hub()
    with pytest.raises(TemporaryError):
        api.servers()
    assert "stand-in" in ada.get(before["nb-0"].path).text
    hub.hub.start_hub()
    after = {one.name: one for one in api.servers()}
    assert {one["metadata"]["uid"] for one in hub.pods()} == pods
    for name in names:
        assert after[name].is_ready
        assert (after[name].pod, after[name].options) == (
            before[name].pod,
            before[name].options,
        )
        assert after[name].started_at == before[name].started_at
    wait_until(lambda: api.stop(ADA, "nb-0"), what="its end")
    wait_until(lambda: len(hub.pods()) == MANY - 1, what="its pod to go")


def test_a_server_that_still_waits_when_the_hub_restarts_is_given_up_with_its_pod(
    hub: RealHub,
) -> None:
    waiting(hub, "nb-1")
    hub.hub.kill_hub()
    hub.hub.start_hub()
    wait_until(lambda: not hub.pods(), what="its pod to go")
    found = hub.api().server(ADA, "nb-1")
    assert found is None or found.is_stopped


def test_a_server_that_waits_is_pending_and_can_be_stopped(hub: RealHub) -> None:
    waiting(hub, "nb-1")
    api = hub.api()
    server = hub.server("nb-1")
    assert (server.pending, server.is_ready) == ("spawn", False)
    assert server in api.servers()
    assert api.failure(ADA, "nb-1") == ""
    assert not api.start(ADA, "nb-1", title="", options={"profile": CPU})
    wait_until(lambda: api.stop(ADA, "nb-1"), what="its end")
    wait_until(lambda: not hub.pods(), what="its pod to go")
    assert api.server(ADA, "nb-1") is None


def test_a_server_of_the_same_name_starts_with_another_profile(hub: RealHub) -> None:
    """What the first profile gave does not stay with the second."""
    api = hub.api()
    api.start(ADA, "nb-1", title="", options={"profile": A100})
    hub.wait_ready("nb-1")
    wait_until(lambda: api.stop(ADA, "nb-1"), what="its end")
    api.start(ADA, "nb-1", title="", options={"profile": CPU})
    hub.wait_ready("nb-1")
    [pod] = hub.pods()
    assert "nvidia.com/gpu" not in pod["spec"]["containers"][0]["resources"]["limits"]
    assert "nodeSelector" not in pod["spec"]


def test_people_have_servers_in_several_namespaces(hub: RealHub) -> None:
    hub.namespace(OTHER)
    hub.portal.offer(ADA, cpu(), namespace=OTHER)
    api = hub.api()
    api.start(ADA, "nb-1", title="", options={"profile": f"cpu--{OTHER}"})
    hub.wait_ready("nb-1")
    assert not hub.pods()
    assert len(hub.pods(OTHER)) == 1
    wait_until(lambda: api.stop(ADA, "nb-1"), what="its end")
    wait_until(lambda: not hub.pods(OTHER), what="its pod to go")


@pytest.mark.parametrize(
    "name", ["x" * 31, "Nb-1", "1nb", "nb 1", "nb.1", "nb/1", "ñb"]
)
def test_names_that_the_hub_does_not_take_are_refused(hub: RealHub, name: str) -> None:
    with pytest.raises(PermanentError) as refused:
        hub.api().start(ADA, name, title="", options={"profile": CPU})
    assert refused.value.code == "invalid"
    assert not hub.pods()


@pytest.mark.parametrize(
    "username", ["Ada.Okafor@Example.com", "x" * 80, "ñandú", "a b"]
)
def test_people_with_any_name_get_pods_with_names_that_kubernetes_takes(
    hub: RealHub, username: str
) -> None:
    api = hub.api()
    hub.portal.offer(username, cpu())
    api.ensure_user(username)
    api.start(username, "nb-1", title="Name", options={"profile": CPU})
    hub.wait_ready("nb-1", username)
    assert [one.name for one in api.servers() if one.username == username] == ["nb-1"]


def test_the_connector_makes_people_known_once(hub: RealHub) -> None:
    api = hub.api()
    api.ensure_user(ADA)
    api.ensure_user(ADA)
    with pytest.raises(PermanentError, match="Failed to create user") as refused:
        api.ensure_user("ada/okafor")
    assert refused.value.code == "invalid"
    with pytest.raises(PermanentError) as refused:
        api.start("nobody", "nb-1", title="", options={})
    assert refused.value.code == "no_such_user"
    assert api.server("nobody", "nb-1") is None
    assert api.stop("nobody", "nb-1")
    assert api.stop(ADA, "nb-99")
    assert api.failure("nobody", "nb-1") == api.failure(ADA, "nb-99") == ""


def test_a_server_that_is_ready_is_not_started_again(hub: RealHub) -> None:
    api = hub.api()
    api.start(ADA, "nb-1", title="", options={"profile": CPU})
    hub.wait_ready("nb-1")
    assert api.start(ADA, "nb-1", title="", options={"profile": A100})
    assert len(hub.pods()) == 1


def test_the_server_without_a_name_is_seen_and_stopped(
    hub: RealHub, ada: PersonAtHub
) -> None:
    ada.spawn("", {"profile": CPU})
    server = hub.wait_ready("")
    assert (server.name, server.path) == ("", f"/user/{ADA}/")
    api = hub.api()
    assert [one.name for one in api.servers()] == [""]
    api.stop(ADA, "")
    wait_until(lambda: api.servers() == [], what="its end")


def test_a_server_whose_pod_somebody_deletes_is_gone_from_the_hub_too(
    hub: RealHub,
) -> None:
    api = hub.api()
    api.start(ADA, "nb-1", title="", options={"profile": CPU})
    hub.wait_ready("nb-1")
    [pod] = hub.pods()
    hub.kubernetes(
        "DELETE", f"/api/v1/namespaces/{TEAM}/pods/{pod['metadata']['name']}"
    )
    wait_until(lambda: api.servers() == [], what="the hub to notice")


def test_a_withdrawn_token_is_refused_in_words(hub: RealHub) -> None:
    for token in ("guessed", "line\nbreak"):
        with pytest.raises(PermanentError) as refused:
            hub.api(token=token).version()
        assert refused.value.code == "token_refused"
        assert token not in refused.value.message


def test_what_is_no_hub_is_not_taken_for_one(hub: RealHub) -> None:
    cluster = hub.cluster["server"]
    elsewhere = JupyterHub(
        cluster,
        hub.hub.token,
        allowed=(cluster.removeprefix("https://"),),
        ca_file=hub.told["ca"],
    )
    with pytest.raises(PermanentError) as refused:
        elsewhere.version()
    assert refused.value.code == "not_a_hub"


def forget_the_test_before(hub: RealHub) -> None:
    """Have the hub ask afresh: its form remembers for a minute what it was told in another test."""
    refused_by_api(hub, {"profile": "forged"})


def refused_by_api(hub: RealHub, options: dict[str, str], username: str = ADA) -> str:
    """Why the hub did not start a server with these choices."""
    api = hub.api()
    assert not api.start(username, "nb-1", title="", options=options)
    wait_until(lambda: api.failure(username, "nb-1") != "", what="its failure")
    assert api.server(username, "nb-1") not in api.servers()
    return api.failure(username, "nb-1")


def environment(pod: dict[str, Any]) -> dict[str, Any]:
    """The variables of a notebook's container: each with its value, or where it is from."""
    [container] = pod["spec"]["containers"]
    return {
        one["name"]: {key: value for key, value in one.items() if key != "name"}
        for one in container["env"]
    }


def waiting(hub: RealHub, name: str) -> None:
    """Start a server that no node has room for."""
    hub.portal.offer(
        ADA,
        a100(gpus=1, options={}, overrides={"node_selector": {"zone": "moon"}}),
        cpu(),
    )
    hub.api().start(ADA, name, title="", options={"profile": A100})
    wait_until(
        lambda: [one["status"]["phase"] for one in hub.pods()] == ["Pending"],
        what="its pod",
    )
