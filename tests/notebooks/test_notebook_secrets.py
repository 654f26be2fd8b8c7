"""Variables of notebooks from Secrets: which are refused, when a hub is told, what a missing one does."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone
from starlette.responses import JSONResponse

from accounts.models import User
from audit.models import Event
from fleet.models import Cluster
from notebooks.hubs.models import Hub
from notebooks.hubs.spawnable import Spawnable, spawnable
from notebooks.models import NotebookServer
from notebooks.profile_desk import actions as profiles
from notebooks.profiles.secrets import refused, with_secrets
from notebooks.servers import actions
from notebooks.servers.following import follow
from notebooks.servers.states import State
from notices.models import Notice
from provisioning.desired.variables import MAX_SECRETS, SecretVariable
from provisioning.models import Tenancy
from tests.notebooks.documents import a100
from tests.notebooks.hub_server import HubOfTests
from tests.notebooks.test_servers import (
    CPU,
    ada,
    hub,
    hub_server,
    lead,
    namespace_of_another_team,
    standing,
    tenancy,
    worked_on,
)
from tests.provisioning.kubernetes import Kubernetes, served
from tests.services.process import wait_until
from web.refusals import BadInput, Conflict

pytestmark = pytest.mark.django_db
__all__ = ["ada", "hub", "hub_server", "lead", "standing", "tenancy"]
TOKEN = SecretVariable("HF_TOKEN", "huggingface", "token")
WANDB = SecretVariable("WANDB_API_KEY", "wandb", "key")
FROM_SECRETS = {
    "HF_TOKEN": {"valueFrom": {"secretKeyRef": {"name": "huggingface", "key": "token"}}}
}
MISSING = (
    "The Secret huggingface, which it takes a value from, is not in its namespace."
)


def launch(
    tenancy: Tenancy,
    by: User,
    *secrets: SecretVariable,
    profile: str = "cpu",
    key: str = "one",
) -> NotebookServer:
    return actions.launch(
        tenancy.pk, profile, {}, by=by, key=key, now=timezone.now(), secrets=secrets
    )


def told(server: NotebookServer, name: str) -> Spawnable:
    """What the hub is told when it asks for a server of this name."""
    hub = Hub.objects.select_related("cluster").get(cluster=server.cluster)
    oid = server.owner.oid
    return spawnable(
        hub, server.username, object_id=oid, now=timezone.now(), server=name
    )


def environments(found: Spawnable) -> dict[str, Any]:
    """The environment of each profile that has one."""
    given = {
        one["slug"]: one["kubespawner_override"].get("environment")
        for one in found.profiles
    }
    return {slug: one for slug, one in given.items() if one}


@pytest.mark.parametrize(
    ("secrets", "words"),
    [
        ([TOKEN], ""),
        ([TOKEN, WANDB], ""),
        ([SecretVariable("JUPYTERHUB_API_TOKEN", "a", "b")], "is set by JupyterHub"),
        ([SecretVariable("JUPYTER_CONFIG_DIR", "a", "b")], "is set by JupyterHub"),
        ([SecretVariable("MEM_LIMIT", "a", "b")], "is set by JupyterHub"),
        ([SecretVariable("EPOCHS", "a", "b")], "is set by the profile"),
        ([SecretVariable("SIZE", "a", "b")], "is set by the profile"),
        ([SecretVariable("OWN", "a", "b")], "is set by the profile"),
        ([SecretVariable("PATH", "a", "b")], "so a notebook cannot set it."),
        ([SecretVariable("LD_PRELOAD", "a", "b")], "so a notebook cannot set it."),
        ([SecretVariable("1A", "a", "b")], "no name of a variable"),
        ([TOKEN, TOKEN], "HF_TOKEN is given twice"),
        ([SecretVariable("A", "A Secret", "b")], "no name of a Secret"),
        ([SecretVariable("A", "a", "b/c")], "no key of a Secret"),
        ([TOKEN] * (MAX_SECRETS + 1), "A notebook takes at most 20"),
    ],
)
def test_what_a_notebook_cannot_have_is_refused_in_words(
    secrets: Sequence[SecretVariable], words: str
) -> None:
    size = {"one": {"title": "One", "variables": {"SIZE": "1"}}}
    document = a100(
        variables={"EPOCHS": "3"},
        options={"size": {"title": "Size", "choices": size}},
        overrides={"environment": {"OWN": "x"}},
    )
    sentence = refused(document, secrets)
    assert words in sentence if words else sentence == ""


def test_a_profile_keeps_what_it_sets_itself() -> None:
    override = {"namespace": "qm", "environment": {"EPOCHS": "3"}}
    profile = {"slug": "cpu", "kubespawner_override": override}
    assert with_secrets(profile, [TOKEN]) == {
        "slug": "cpu",
        "kubespawner_override": {
            "namespace": "qm",
            "environment": {"EPOCHS": "3", **FROM_SECRETS},
        },
    }
    assert override["environment"] == {"EPOCHS": "3"}
    assert with_secrets(profile, []) is profile
    assert with_secrets({"slug": "x"}, [TOKEN])["kubespawner_override"] == {
        "environment": FROM_SECRETS
    }


def test_the_hub_is_told_of_them_for_this_server_and_its_profile_alone(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = worked_on(launch(tenancy, ada, TOKEN))
    found = told(server, server.name)
    assert environments(found) == {f"cpu--{tenancy.namespace}": FROM_SECRETS}
    assert found.variables == ["HF_TOKEN"]
    other = worked_on(launch(tenancy, ada, key="other"))
    for name in ("", "mine", other.name):
        assert environments(told(server, name)) == {}
    # The hub keeps choices, and gives them back to whoever reads its servers.
    assert hub.options_of(server.name) == {"profile": f"cpu--{tenancy.namespace}"}


def test_a_server_of_the_same_name_that_is_somebody_elses_has_none(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests
) -> None:
    server = launch(tenancy, ada, TOKEN)
    NotebookServer.objects.update(owner=lead)
    assert environments(told(server, server.name)) == {}


def test_the_start_is_recorded_with_names_and_kept_for_the_next_one(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = worked_on(launch(tenancy, ada, TOKEN, WANDB))
    hub.come_up(server.name)
    actions.stop(worked_on(server).pk, by=ada, now=timezone.now())
    worked_on(server)
    server = actions.start(server.pk, by=ada, now=timezone.now())
    assert server.secrets == [TOKEN.as_json, WANDB.as_json]
    assert told(server, server.name).variables == ["HF_TOKEN", "WANDB_API_KEY"]
    names = "HF_TOKEN from huggingface, WANDB_API_KEY from wandb"
    launches = Event.objects.filter(kind="notebook.launched").order_by("seq")
    assert [one.details["secrets"] for one in launches] == [names, names]


def test_it_starts_again_with_other_ones_and_gets_none_while_it_runs(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server, now = worked_on(launch(tenancy, ada, TOKEN)), timezone.now()
    with pytest.raises(Conflict, match="Stop it first") as running:
        actions.start(server.pk, by=ada, now=now, secrets=[WANDB])
    assert running.value.code == "is_running"
    assert actions.start(server.pk, by=ada, now=now, secrets=[TOKEN]).generation == 1
    actions.stop(server.pk, by=ada, now=now)
    worked_on(server)
    jupyter = SecretVariable("JPY_API_TOKEN", "a", "b")
    with pytest.raises(BadInput, match="is set by JupyterHub"):
        actions.start(server.pk, by=ada, now=now, secrets=[jupyter])
    server.refresh_from_db()
    assert (server.state, server.secrets) == (State.STOPPED, [TOKEN.as_json])

    server = actions.start(server.pk, by=ada, now=now, secrets=[WANDB])
    assert server.secrets == [WANDB.as_json]
    assert told(server, server.name).variables == ["WANDB_API_KEY"]
    last = Event.objects.filter(kind="notebook.launched").order_by("seq").last()
    assert last is not None
    assert last.details["secrets"] == "WANDB_API_KEY from wandb"
    actions.stop(server.pk, by=ada, now=now)
    worked_on(server)
    assert actions.start(server.pk, by=ada, now=now, secrets=[]).secrets == []


@pytest.mark.parametrize("wrong", ["JUPYTERHUB_USER", "PATH"])
def test_a_launch_is_refused_at_the_field(
    tenancy: Tenancy, ada: User, wrong: str
) -> None:
    with pytest.raises(BadInput) as problem:
        launch(tenancy, ada, SecretVariable(wrong, "a", "b"))
    assert (problem.value.code, problem.value.field) == ("bad_secret", "secrets")
    assert wrong in problem.value.message
    assert not NotebookServer.objects.exists()


def test_one_whose_profile_sets_the_variable_by_now_is_not_started_again(
    tenancy: Tenancy, ada: User, lead: User, hub: HubOfTests
) -> None:
    server = worked_on(launch(tenancy, ada, TOKEN))
    actions.stop(server.pk, by=ada, now=timezone.now())
    worked_on(server)
    text = f"{CPU}variables: {{HF_TOKEN: none}}\n"
    version = profiles.save(text, by=lead, now=timezone.now())
    profiles.publish(version.profile.slug, by=lead)
    with pytest.raises(BadInput, match="HF_TOKEN is set by the profile"):
        actions.start(server.pk, by=ada, now=timezone.now())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("profile", "elsewhere", "kept"),
    [("cpu", False, True), ("a100", False, False), ("cpu", True, False)],
)
def test_one_that_is_started_again_in_the_hub_keeps_them_where_they_belong(
    tenancy: Tenancy,
    ada: User,
    hub: HubOfTests,
    profile: str,
    elsewhere: bool,
    kept: bool,
) -> None:
    server = worked_on(launch(tenancy, ada, TOKEN))
    hub.come_up(server.name)
    worked_on(server)
    hub.end(server.name)
    follow(now=timezone.now)
    place = namespace_of_another_team(tenancy, ada) if elsewhere else tenancy
    chosen = {"profile": f"{profile}--{place.namespace}"}
    hub.start_inside(str(ada.oid), server.name, chosen)
    follow(now=timezone.now)
    server.refresh_from_db()
    assert server.state == State.READY
    assert server.secrets == ([TOKEN.as_json] if kept else [])


@pytest.fixture
def kubernetes(
    tenancy: Tenancy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Kubernetes]:
    """The cluster of the namespace."""
    with served() as found:
        monkeypatch.setattr(settings.ENV, "kubeconfig_dir", tmp_path)
        Cluster.objects.update(kubeconfig=found.kubeconfig(tmp_path))
        metadata = {"name": tenancy.namespace}
        found.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        yield found


def make_pod(kubernetes: Kubernetes, server: NotebookServer, name: str = "") -> None:
    """The pod that KubeSpawner makes of a server."""
    namespace = server.tenancy.namespace
    name = name or f"jupyter-{server.username}--{server.name}---f07954ac"
    source = FROM_SECRETS["HF_TOKEN"]
    container = {
        "name": "notebook",
        "image": "lab:1",
        "env": [{"name": "HF_TOKEN", **source}],
    }
    kubernetes.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {"component": "singleuser-server"},
            },
            "spec": {"containers": [container]},
        }
    )


def seen(server: NotebookServer, message: str, *, at: datetime | None = None) -> None:
    """Wait until a worker says this of a server that starts."""
    wait_until(
        lambda: worked_on(server, at=at).message == message, what=message or "nothing"
    )


@pytest.mark.slow
def test_a_secret_that_is_not_there_is_named_and_waited_for(
    tenancy: Tenancy, ada: User, hub: HubOfTests, kubernetes: Kubernetes
) -> None:
    server = worked_on(launch(tenancy, ada, TOKEN))
    make_pod(kubernetes, server)
    seen(server, MISSING)
    assert server.state == State.STARTING
    since = server.secret_missed_at
    assert since is not None
    assert worked_on(server).secret_missed_at == since

    where = f"/api/v1/namespaces/{tenancy.namespace}/secrets"
    metadata = {"name": "huggingface"}
    other = {"metadata": metadata, "data": {"other": "eA=="}}
    kubernetes.write("POST", where, other)
    seen(
        server, "The Secret huggingface, which it takes a value from, has no key token."
    )
    whole = {"data": {"token": "eA=="}}
    kubernetes.write("PATCH", f"{where}/huggingface", whole)
    seen(server, "")
    assert (server.state, server.secret_missed_at) == (State.STARTING, None)
    hub.come_up(server.name)
    assert worked_on(server).state == State.READY


def test_after_ten_minutes_it_is_given_up_and_its_pod_goes(
    tenancy: Tenancy, ada: User, hub: HubOfTests, kubernetes: Kubernetes
) -> None:
    server = worked_on(launch(tenancy, ada, TOKEN))
    make_pod(kubernetes, server)
    seen(server, MISSING)
    assert server.secret_missed_at is not None
    nearly = server.secret_missed_at + timedelta(minutes=9)
    assert worked_on(server, at=nearly).state == State.STARTING
    server = worked_on(server, at=nearly + timedelta(minutes=1))
    assert server.state == State.FAILED
    assert server.message.startswith(f"{MISSING} It waited for 10 minutes.")
    assert server.name not in hub.users[server.username]
    notice = Notice.objects.get(kind="notebook_ended", person=ada)
    assert "The Secret huggingface" in str(notice.message)

    again = actions.start(server.pk, by=ada, now=timezone.now())
    assert (again.message, again.secret_missed_at) == ("", None)


@pytest.mark.slow
def test_what_another_notebook_waits_for_is_not_its_own(
    tenancy: Tenancy, ada: User, hub: HubOfTests, kubernetes: Kubernetes
) -> None:
    without, other = (
        worked_on(launch(tenancy, ada, key="without")),
        worked_on(launch(tenancy, ada, TOKEN, key="other")),
    )
    stuck = worked_on(launch(tenancy, ada, TOKEN, key="stuck"))
    make_pod(kubernetes, stuck)
    seen(stuck, MISSING)
    assert worked_on(without).message == worked_on(other).message == ""


@pytest.mark.slow
def test_a_cluster_that_does_not_answer_takes_nothing_back_and_ends_nothing(
    tenancy: Tenancy, ada: User, hub: HubOfTests, kubernetes: Kubernetes
) -> None:
    """The ten minutes would begin anew, and on a cluster that fails now and then its GPUs be held for ever."""
    server = worked_on(launch(tenancy, ada, TOKEN))
    make_pod(kubernetes, server)
    seen(server, MISSING)
    since = server.secret_missed_at
    assert since is not None
    kubernetes.fail("/pods", status=500)
    server = worked_on(server, at=since + timedelta(minutes=9))
    assert (server.message, server.secret_missed_at) == (MISSING, since)
    server = worked_on(server, at=since + timedelta(minutes=11))
    assert server.state == State.STARTING
    kubernetes.cluster.faults.clear()
    server = worked_on(server, at=since + timedelta(minutes=12))
    assert server.state == State.FAILED


def test_a_hub_that_fails_once_does_not_hide_which_secret_is_waited_for(
    tenancy: Tenancy, ada: User, hub: HubOfTests, kubernetes: Kubernetes
) -> None:
    server = worked_on(launch(tenancy, ada, TOKEN))
    make_pod(kubernetes, server)
    seen(server, MISSING)
    hub.away = JSONResponse({"message": "busy"}, 503)
    assert worked_on(server).message == MISSING


def test_a_server_without_a_name_gets_none_as_its_hub_would_give_it_none(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    """A page that names them beside a notebook that comes up without them would be worse than a refusal."""
    hub.start_inside(str(ada.oid), "", {"profile": f"cpu--{tenancy.namespace}"})
    follow(now=timezone.now)
    hub.end("")
    follow(now=timezone.now)
    server = NotebookServer.objects.get()
    browser = Client()
    browser.force_login(ada)
    assert "variables from Secrets" not in browser.get(f"/notebooks/{server.pk}").text
    with pytest.raises(BadInput) as refused:
        actions.start(server.pk, by=ada, now=timezone.now(), secrets=[TOKEN])
    assert (refused.value.code, refused.value.field) == ("unnamed_server", "secrets")
    assert actions.start(server.pk, by=ada, now=timezone.now()).secrets == []
