"""Which jobs of a cluster are notebooks of the portal, and what pages call them."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from notebooks.servers.models import NotebookServer
from provisioning.models import Tenancy
from tests.notebooks.hub_server import HubOfTests
from tests.notebooks.test_servers import ada, hub, hub_server, launch, lead, tenancy
from tests.pages import parsed
from tests.workloads.copying import Copying
from tests.workloads.test_notebook_pages import pod, standing, workload
from workloads.observed import JobKey
from workloads.own_work import OwnWork, own_link, own_work_in

pytestmark = pytest.mark.django_db
__all__ = ["ada", "hub", "hub_server", "lead", "standing", "tenancy"]


def pod_name(server: NotebookServer) -> str:
    """What KubeSpawner calls a server's pod."""
    return f"jupyter-ada--{server.name}"


def words(user: User, address: str) -> str:
    browser = Client()
    browser.force_login(user)
    return " ".join(parsed(browser.get(address).content.decode()).words.split())


def test_a_pod_of_a_notebook_has_its_name_and_its_page(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = launch(tenancy, ada)
    cluster, namespace, name = (
        tenancy.cluster.name,
        tenancy.namespace,
        pod_name(server),
    )
    keys = [
        JobKey(namespace, name, kind="Pod"),
        JobKey(namespace, f"{name}-2", kind="Pod"),
        JobKey("elsewhere", name, kind="Pod"),
        JobKey(namespace, name, kind="Job"),
    ]
    found = own_work_in([tenancy], {cluster: keys})
    assert found == {
        (cluster, namespace, name): OwnWork(title=server.title, notebook=server.pk)
    }
    assert own_link(run=None, notebook=server.pk) == f"/notebooks/{server.pk}"
    assert own_link(run=7, notebook=None) == "/runs/7"
    assert own_link(run=None, notebook=None) == ""


def test_without_pods_no_notebook_is_asked_for(
    tenancy: Tenancy, ada: User, django_assert_num_queries: Any
) -> None:
    key = JobKey(tenancy.namespace, "train")
    with django_assert_num_queries(1):
        assert own_work_in([tenancy], {tenancy.cluster.name: [key]}) == {}


def test_the_pages_of_work_and_queue_call_a_notebook_by_its_name(
    tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    server = launch(tenancy, ada)
    NotebookServer.objects.filter(pk=server.pk).update(title="Look at the labels")
    made, queued = pod(server), workload(server)
    made["metadata"]["name"] = queued["metadata"]["ownerReferences"][0]["name"] = (
        pod_name(server)
    )
    copying = Copying(tenancy.cluster)
    queue = {
        "kind": "LocalQueue",
        "metadata": {"name": "default", "namespace": tenancy.namespace},
        "spec": {"clusterQueue": tenancy.namespace},
    }
    copying.begin(made, queued, queue)
    for address in (
        f"/teams/{tenancy.team.slug}/work",
        f"/clusters/{tenancy.cluster.name}/queue",
    ):
        assert f"Look at the labels Pod {pod_name(server)}" in words(ada, address)
