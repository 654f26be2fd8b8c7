"""JupyterHubs as platform leads connect them: addresses, tokens, keys, who may, by page and API."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from audit.models import Event
from fleet.models import Cluster
from notebooks.hubs import actions
from notebooks.hubs.keys import new_key, opens, prefix_of
from notebooks.models import Hub, HubAccount
from tests import factories
from tests.calling import Caller
from tests.notebooks.attacks import server
from tests.notebooks.hubs import hub
from tests.scene import scene
from web.refusals import Conflict, NoRight

pytestmark = pytest.mark.django_db
WANTED = {"address": "https://hub.example.com", "token_file": "hub", "reclaim": "warn"}


@pytest.fixture
def lead() -> User:
    return factories.person("Priya Nair", Role.PLATFORM_LEAD)


@pytest.fixture
def cluster() -> Cluster:
    return factories.cluster("training")


@pytest.fixture(autouse=True)
def tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of tokens, with two."""
    monkeypatch.setattr(settings.ENV, "hub_credentials_dir", tmp_path)
    monkeypatch.setattr(settings.ENV, "hub_hosts_allowed", ["10.0.0.7:8443"])
    (tmp_path / "hub").write_text("secret\n")
    (tmp_path / "other").write_text("secret\n")
    return tmp_path


def connect(cluster: Cluster, lead: User, **values: str) -> Hub:
    """Connect a hub, or change it."""
    return actions.connect(cluster, **{**WANTED, **values}, by=lead, now=timezone.now())


def test_a_hub_is_connected_changed_and_disconnected(
    lead: User, cluster: Cluster
) -> None:
    caller = Caller(lead)
    assert caller.get("hubs/training/").status_code == 404
    made = caller.put("hubs/training/", WANTED)
    assert made.status_code == 200, made.content
    told = made.json()
    assert {name: told[name] for name in WANTED} == WANTED
    assert (
        told["cluster"],
        told["reachable"],
        told["key_prefix"],
        told["message"],
    ) == (
        "training",
        None,
        "",
        "",
    )
    assert caller.put("hubs/training/", WANTED).json() == told
    changed = caller.put(
        "hubs/training/", {"address": "https://hub.example.com/", "token_file": "other"}
    )
    assert (changed.json()["token_file"], changed.json()["reclaim"]) == (
        "other",
        "warn",
    )
    assert caller.get("hubs/").json()["results"] == [changed.json()]
    assert caller.delete("hubs/training/").status_code == 204
    assert caller.get("hubs/").json()["results"] == []
    kinds = Event.objects.filter(subject_type="hub", subject_id="training").order_by(
        "seq"
    )
    assert [(one.kind, one.details.get("token_file")) for one in kinds] == [
        ("hub.connected", "hub"),
        ("hub.changed", "other"),
        ("hub.disconnected", None),
    ]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"address": "http://hub.example.com"}, "address"),
        ({"address": "hub.example.com"}, "address"),
        ({"address": "https://"}, "address"),
        ({"address": "https://hub.example.com?x=1"}, "address"),
        ({"address": "https://hub.example.com/#x"}, "address"),
        ({"address": "https://hub.example.com/../x"}, "address"),
        ({"address": "https://hub.example.com/%2e%2e"}, "address"),
        ({"address": "https://user:canary@hub.example.com"}, "address"),
        ({"address": "https://hub.example.com:8443"}, "address"),
        ({"address": "https://hub.example.com:99999"}, "address"),
        ({"address": "https://localhost"}, "address"),
        ({"address": "https://hub.localhost"}, "address"),
        ({"address": "https://127.0.0.1"}, "address"),
        ({"address": "https://0x7f000001"}, "address"),
        ({"address": "https://[::1]"}, "address"),
        ({"address": "https://10.0.0.7"}, "address"),
        ({"address": "https://169.254.169.254"}, "address"),
        ({"address": "https://168.63.129.16"}, "address"),
        ({"token_file": "../hub"}, "token_file"),
        ({"token_file": ".."}, "token_file"),
        ({"token_file": "nothing"}, "token_file"),
        ({"token_file": "/etc/passwd"}, "token_file"),
        ({"public_address": "http://hub.example.com"}, "public_address"),
        ({"public_address": "javascript:alert(1)"}, "public_address"),
        ({"public_address": "https://hub.example.com?x=1"}, "public_address"),
        ({"public_address": "https://user:canary@hub.example.com"}, "public_address"),
        ({"reclaim": "soon"}, "reclaim"),
    ],
)
def test_what_could_not_work_is_refused_at_its_field(
    lead: User, cluster: Cluster, change: dict[str, str], field: str
) -> None:
    answer = Caller(lead).put("hubs/training/", WANTED | change)
    assert answer.status_code == 422, answer.content
    assert answer.json()["errors"][0]["pointer"] == f"/{field}"
    assert "canary" not in answer.content.decode()
    assert not Hub.objects.exists()


def test_a_host_that_is_allowed_is_taken_but_never_one_that_hands_out_credentials(
    lead: User, cluster: Cluster
) -> None:
    assert connect(cluster, lead, address="https://10.0.0.7:8443/jupyter/").address == (
        "https://10.0.0.7:8443/jupyter"
    )
    settings.ENV.hub_hosts_allowed.append("169.254.169.254")
    answer = Caller(lead).put(
        "hubs/training/", WANTED | {"address": "https://169.254.169.254"}
    )
    assert answer.json()["code"] == "bad_address"


def test_people_may_open_a_hub_at_another_address_than_the_portal_calls(
    lead: User, cluster: Cluster
) -> None:
    inside = "https://hub.internal.example.com/jupyter"
    assert connect(cluster, lead, public_address=f"{inside}/").opened_at == inside
    assert connect(cluster, lead, reclaim="on").opened_at == inside
    assert (
        connect(cluster, lead, public_address="http://10.0.0.7:8443").opened_at
        == "http://10.0.0.7:8443"
    )
    assert connect(cluster, lead, public_address="").opened_at == WANTED["address"]


def test_one_address_in_two_spellings_is_one_hub(lead: User, cluster: Cluster) -> None:
    first = connect(cluster, lead, address="HTTPS://Hub.Example.com:443/")
    assert first.address == "https://hub.example.com"
    other = factories.cluster("second")
    with pytest.raises(Conflict, match="another cluster"):
        connect(other, lead)
    assert (
        Caller(lead).put("hubs/second/", WANTED).json()["code"]
        == "hub_of_another_cluster"
    )


def test_another_address_is_another_hub_whose_names_are_not_known(
    lead: User, cluster: Cluster
) -> None:
    made = connect(cluster, lead)
    now = timezone.now()
    HubAccount.objects.create(hub=made, user=lead, username="priya", first_seen_at=now)
    Hub.objects.update(reachable=True, version="6.1.1", looked_at=now)
    assert connect(cluster, lead, reclaim="on").reachable is True
    again = connect(cluster, lead, address="https://new.example.com")
    assert (again.reachable, again.version, again.accounts.count()) == (None, "", 0)
    assert again.reclaim == "warn"


def test_a_key_is_shown_once_and_ends_the_one_before(
    lead: User, cluster: Cluster
) -> None:
    connect(cluster, lead)
    caller = Caller(lead)
    first = caller.post("hubs/training/key/", key="one")
    assert first.status_code == 201
    key = first.json()["key"]
    made = Hub.objects.get()
    assert (prefix_of(key), opens(key, made.key_digest)) == (made.key_prefix, True)
    assert key not in repr(Event.objects.values_list("details"))
    assert caller.post("hubs/training/key/", key="one").json()["key"] is None
    assert opens(key, Hub.objects.get().key_digest)
    second = caller.post("hubs/training/key/").json()["key"]
    assert not opens(key, Hub.objects.get().key_digest)
    assert opens(second, Hub.objects.get().key_digest)
    assert "key_digest" not in caller.get("hubs/training/").json()
    [before, after] = Event.objects.filter(kind="hub.key_made").order_by("seq")
    assert after.details["ended"] == before.details["prefix"] == prefix_of(key)


def test_a_hub_with_notebooks_is_neither_disconnected_nor_moved(tokens: Path) -> None:
    made = scene()
    cluster, lead = Cluster.objects.get(pk=made.flavor.cluster_id), made.priya
    there = connect(cluster, lead)
    running = server(SimpleNamespace(scene=made))
    with pytest.raises(Conflict, match="1 notebook runs on this hub"):
        actions.disconnect(there, by=lead, now=timezone.now())
    assert (
        Caller(lead).delete(f"hubs/{cluster.name}/").json()["code"] == "notebooks_run"
    )
    with pytest.raises(Conflict, match="stopped first"):
        connect(cluster, lead, address="https://new.example.com")
    assert connect(cluster, lead, token_file="other").token_file == "other"
    page = Client()
    page.force_login(lead)
    refused = page.post(f"/hubs/{cluster.name}/disconnect", follow=True)
    assert "They are stopped first" in refused.content.decode()
    type(running).objects.filter(pk=running.pk).update(
        state="stopping", stop_reason="limit"
    )
    type(running).objects.filter(pk=running.pk).update(
        state="stopped", stopped_at=timezone.now()
    )
    actions.disconnect(there, by=lead, now=timezone.now())
    assert not Hub.objects.exists()


@pytest.mark.parametrize(
    "text",
    ["", "qmh_", "qm_0123abcd_x", "qmh_0123abcd_short", f"qmh_0123abcd_{'x' * 43} "],
)
def test_what_is_no_key_has_no_prefix(text: str) -> None:
    assert prefix_of(text) == ""


def test_a_new_key_hides_itself() -> None:
    made = new_key()
    assert made.text not in repr(made)
    assert made.text.startswith(f"qmh_{made.prefix}_")


def test_only_platform_leads_manage_hubs(lead: User, cluster: Cluster) -> None:
    made = connect(cluster, lead)
    ada = factories.person("Ada Okafor")
    caller, browser = Caller(ada), Client()
    browser.force_login(ada)
    assert caller.get("hubs/").status_code == 403
    assert caller.get("hubs/training/").status_code == 403
    assert caller.put("hubs/training/", WANTED).status_code == 403
    assert caller.post("hubs/training/key/").status_code == 403
    assert caller.delete("hubs/training/").status_code == 403
    for path in ("", "/training", "/training/disconnect"):
        assert browser.get(f"/hubs{path}").status_code == 403
    for path in ("", "/key", "/disconnect"):
        assert browser.post(f"/hubs/training{path}").status_code == 403
    with pytest.raises(NoRight):
        actions.make_key(made, by=ada, now=timezone.now())
    with pytest.raises(NoRight):
        actions.disconnect(made, by=ada, now=timezone.now())


def test_the_api_takes_nothing_that_it_does_not_know(
    lead: User, cluster: Cluster
) -> None:
    caller = Caller(lead)
    assert caller.put("hubs/training/", WANTED | {"token": "x"}).status_code == 422
    assert (
        caller.put("hubs/training/", {"address": WANTED["address"]}).status_code == 422
    )
    assert caller.put("hubs/nowhere/", WANTED).status_code == 404
    assert caller.post("hubs/nowhere/key/").status_code == 404
    assert caller.delete("hubs/training/").status_code == 404


def test_a_hub_that_is_gone_meanwhile_gets_no_key(lead: User, cluster: Cluster) -> None:
    made = hub(cluster)
    Hub.objects.all().delete()
    with pytest.raises(Conflict, match="no hub any more"):
        actions.make_key(made, by=lead, now=timezone.now())


@pytest.mark.slow
def test_a_hub_is_connected_and_gets_its_key_on_its_page(
    lead: User, cluster: Cluster
) -> None:
    page = Client()
    page.force_login(lead)
    assert "Not connected" in page.get("/hubs").content.decode()
    assert "Connect the hub" in page.get("/hubs/training").content.decode()
    assert page.get("/hubs/nowhere").status_code == 404
    assert page.post("/hubs/training/key").status_code == 404
    assert page.get("/hubs/training/disconnect").status_code == 404
    wrong = page.post("/hubs/training", WANTED | {"address": "https://127.0.0.1"})
    assert wrong.status_code == 422
    assert "not among the hosts allowed" in wrong.content.decode()
    assert page.post("/hubs/training", WANTED).status_code == 302
    shown = page.get("/hubs/training").content.decode()
    assert "Not observed yet" in shown
    assert "It has none yet" in shown
    made = page.post("/hubs/training/key")
    assert made.status_code == 201
    prefix = Hub.objects.get().key_prefix
    assert f"qmh_{prefix}_" in made.content.decode()
    again = page.get("/hubs/training").content.decode()
    assert f"qmh_{prefix}…" in again
    assert f"qmh_{prefix}_" not in again
    Hub.objects.update(
        reachable=False, looked_at=timezone.now(), failures=1, message="It is a teapot."
    )
    for path in ("/hubs", "/hubs/training"):
        assert "It is a teapot." in page.get(path).content.decode()
    event = Event.objects.filter(kind="hub.connected").get()
    assert 'href="/hubs/training"' in page.get(f"/audit/{event.pk}/").content.decode()
    assert "Disconnect" in page.get("/hubs/training/disconnect").content.decode()
    assert page.post("/hubs/training/disconnect").status_code == 302
    assert not Hub.objects.exists()
