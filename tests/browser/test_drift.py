"""Two people watch one cluster: a change from elsewhere appears by itself, is explained, and goes by one click."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from django.conf import settings as configured
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.test.utils import override_settings
from django.utils import timezone
from playwright.sync_api import expect

from accounts.roles import Role
from fleet.models import Cluster
from portal.http.handler import OneThreadHandler
from provisioning import reconcile
from provisioning.delivery import client_for
from provisioning.models import Tenancy
from sandbox.serving import Served, listen, port_of
from tests import factories
from tests.browser.conftest import Open, overflow, violations
from tests.provisioning.kubernetes import Kubernetes, served
from tests.serving import serving

pytestmark = pytest.mark.slow

QUOTA = ("v1", "ResourceQuota")
T = TypeVar("T")


@dataclass(frozen=True)
class Server:
    """Where the portal is served, and the settings that pytest-django asks a live server for."""

    url: str
    _live_server_modified_settings: Any = field(
        default_factory=lambda: override_settings(ALLOWED_HOSTS=["127.0.0.1"])
    )


def apart(act: Callable[..., T], *given: Any) -> T:
    """Do something in a thread of its own: Playwright's loop runs in this one, and nobody else's can."""
    with ThreadPoolExecutor(1) as one:
        return one.submit(act, *given).result()


@pytest.fixture(scope="module")
def kubernetes() -> Iterator[Kubernetes]:
    """A cluster that people can meddle with."""
    serving_it = served()
    yield apart(serving_it.__enter__)
    apart(serving_it.__exit__, None, None, None)


@pytest.fixture
def live_server(transactional_db: None) -> Iterator[Server]:
    """The portal served as in production, by ASGI: the other one cannot hold an event stream open."""
    bound = listen(0)
    portal: Any = ASGIStaticFilesHandler(OneThreadHandler())
    with serving(Served(portal, bound, None)):
        yield Server(f"http://127.0.0.1:{port_of(bound)}")


@pytest.fixture
def place(
    transactional_db: None,
    kubernetes: Kubernetes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Tenancy]:
    """A tenancy that was made true, on a cluster where a lead is asked about drift."""
    monkeypatch.setattr(configured.ENV, "kubeconfig_dir", tmp_path)
    cluster = factories.cluster(
        "training",
        title="Training East US",
        kubeconfig=kubernetes.kubeconfig(tmp_path),
        on_drift="ask",
    )
    factories.flavor(cluster, "a100", node_labels={"accelerator": "nvidia-a100"})
    tenancy = factories.tenancy(factories.team("Vision"), cluster)
    look(tenancy)
    yield Tenancy.objects.get(pk=tenancy.pk)
    client_for(Cluster.objects.get(pk=cluster.pk)).close()


def look(tenancy: Tenancy) -> None:
    """A worker's pass."""
    assert reconcile.reconcile(tenancy.pk, now=timezone.now) is not None


def test_it_appears_by_itself_is_explained_and_goes_by_one_click(
    open_page: Open, place: Tenancy, kubernetes: Kubernetes
) -> None:
    watching = open_page(
        factories.person("Marcus Weber", Role.PLATFORM_LEAD),
        "/clusters/training/",
        theme="dark",
    )
    acting = open_page(
        factories.person("Priya Raman", Role.PLATFORM_LEAD),
        "/clusters/training/",
        size="phone",
    )
    for page in (watching, acting):
        expect(page.get_by_text("Everything stands as it was made.")).to_be_visible()
        page.evaluate("window.sameDocument = true")
    edit = {"spec": {"hard": {"requests.nvidia.com/gpu": "64"}}}
    apart(kubernetes.patch, QUOTA, "team-quota", place.namespace, edit)
    look(place)
    words = "kubectl-edit changed GPUs allowed from 0 to 64"
    for page in (watching, acting):
        expect(page.get_by_text(words)).to_be_visible()
        expect(
            page.get_by_text("Nothing is written until a platform lead decides.")
        ).to_be_visible()
        assert violations(page) == []
        assert overflow(page) <= 0
    acting.get_by_role("button", name="Repair").click()
    expect(watching.get_by_text("Being put right")).to_be_visible()
    look(place)
    quota = apart(kubernetes.get, QUOTA, "team-quota", place.namespace)
    assert quota is not None
    assert quota["spec"]["hard"]["requests.nvidia.com/gpu"] == "0"
    expect(watching.get_by_text("Everything stands as it was made.")).to_be_visible()
    watching.get_by_text("Lately: 1 dealt with").click()
    expect(watching.get_by_text("By Priya Raman")).to_be_visible()
    assert watching.evaluate("window.sameDocument")
