"""The page of versions in a real browser, with everything that can differ and everything that is not known."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import User
from fleet.models import Cluster
from fleet.versions.reading import versions_of
from tests import factories
from tests.browser.conftest import LOOKS, Open, arrives, overflow, violations

pytestmark = pytest.mark.slow


def seen(*drivers: tuple[str, str], **info: str) -> dict[str, Any]:
    """What nodes ran just now: a driver and its CUDA for each of them."""
    usual = {
        "kubeletVersion": "v1.36.2",
        "containerRuntimeVersion": "containerd://2.1.0",
        "osImage": "Ubuntu 24.04.3 LTS",
        "kernelVersion": "6.8.0-1034-azure",
    }
    nodes = [
        {
            "metadata": {
                "labels": {
                    "nvidia.com/cuda.driver-version.full": driver,
                    "nvidia.com/cuda.runtime-version.full": cuda,
                    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB" if driver else "",
                }
            },
            "status": {"nodeInfo": usual | info},
        }
        for driver, cuda in drivers
    ]
    now = timezone.now()
    return {"versions": versions_of(nodes), "versions_at": now, "gpus_seen_at": now}


def cluster(name: str, title: str, **fields: Any) -> Cluster:
    return factories.cluster(
        name, **({"title": title, "kueue_version": "v0.19.2"} | fields)
    )


@pytest.fixture
def ada(transactional_db: None) -> User:
    """A data scientist, before whom stands a fleet that is not alike."""
    now = timezone.now()
    new, old = ("570.86.15", "12.8"), ("550.90.07", "12.4")
    east = cluster("training-eastus", "Training East US")
    factories.flavor(east, "a100", **seen(*[new] * 6, *[old] * 2))
    factories.flavor(east, "h100", product="H100", **seen(new, new))
    dev = cluster(
        "dev-eastus",
        "Development",
        purpose=Cluster.Purpose.DEVELOPMENT,
        version="v1.37.0",
        kueue_version="v0.20.0",
    )
    ahead = seen(("580.65.06", "13.0"), kubeletVersion="v1.37.0")
    factories.flavor(dev, "a100", **ahead)
    bare = cluster("bare-westeurope", "مجموعة أوروبا", kueue_version="v0.19.2")
    other = {
        "containerRuntimeVersion": "cri-o://1.34.0",
        "osImage": "Microsoft Azure Linux 3.0",
    }
    factories.flavor(bare, "t4", product="T4", memory_gb=16, **seen(("", ""), **other))
    away = cluster(
        "away-westus",
        "Inference West US with a long name that somebody gave it",
        reachable=False,
        message="It cannot be reached: the connection timed out.",
        last_contact_at=now - timedelta(hours=5),
    )
    late = seen(old, old) | {"versions_at": now - timedelta(hours=5)}
    factories.flavor(away, "a100", **late)
    odd = cluster("odd", "Odd", version="", kueue_version="", reachable=None)
    factories.flavor(odd, "l4", product="L4", **seen(("w" * 80, "x" * 80)))
    cluster("new", "New", version="", kueue_version="", reachable=None)
    return factories.person("Ada Okafor")


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_what_differs_is_read_on_every_screen(
    ada: User, open_page: Open, size: str, theme: str
) -> None:
    page = open_page(ada, "/clusters/", size=size, theme=theme)
    page.get_by_role("link", name="Versions", exact=True).click()
    arrives(page, "Versions")

    expect(page.get_by_text("older than 580.65.06").first).to_be_visible()
    expect(page.get_by_text("2 of 8 nodes: 550.90.07")).to_be_visible()
    expect(page.get_by_text("the cluster does not answer")).to_be_visible()
    assert violations(page) == []
    assert overflow(page) == 0

    page.get_by_role("link", name="How to find out").click()
    arrives(page, "When it works on one cluster and fails on another")
