"""A notebook in a real browser: chosen, launched, ready before one's eyes, stopped; everybody can use its pages."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import User
from fleet.models import Cluster
from notebooks.hubs.models import Hub
from notebooks.models import NotebookServer
from notebooks.servers import actions
from notebooks.servers.ending import reclaim_idle
from notebooks.servers.following import follow
from notebooks.servers.states import State
from provisioning.models import Tenancy
from tests import factories
from tests.browser.conftest import LOOKS, Open, overflow, violations
from tests.notebooks.hub_server import HubOfTests
from tests.notebooks.test_servers import (
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
from tests.workloads.copying import Copying
from tests.workloads.test_notebook_pages import PAGE, pod, queue_of, retired, workload

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]
__all__ = ["ada", "hub", "hub_server", "lead", "standing", "tenancy"]


def test_a_notebook_is_chosen_launched_seen_ready_and_stopped(
    open_page: Open, tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    page = open_page(ada, PAGE)
    card = page.locator("#a100")
    answer = card.locator("#answer-a100")
    size = card.get_by_label("Size", exact=True)
    card.get_by_label("Name").fill("Explore")
    size.select_option("four")
    expect(answer).to_contain_text("Your team holds too few A100")
    expect(answer.get_by_role("link", name="Ask for 2 GPUs")).to_be_visible()
    size.select_option("one")
    expect(answer).not_to_contain_text("too few")
    expect(card.get_by_label("Name")).to_have_value("Explore")
    card.get_by_label("Image", exact=True).select_option("base")
    card.get_by_role("button", name="Launch").click()
    heading = page.locator("#heading")
    expect(heading).to_contain_text("Explore")
    expect(heading).to_contain_text("Starting")

    server = worked_on(NotebookServer.objects.get())
    hub.come_up(server.name)
    worked_on(server)

    link = page.get_by_role("link", name="Open in a new tab")
    expect(link).to_have_attribute("href", f"{hub.address}{server.path}")
    expect(heading).to_contain_text("Ready")
    page.get_by_text("Stop", exact=True).click()
    page.get_by_role("button", name="Stop the notebook").click()
    expect(heading).to_contain_text("Stopping")
    worked_on(server)
    expect(heading).to_contain_text("Stopped")
    expect(page.get_by_role("button", name="Start again")).to_be_visible()
    page.context.close()


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_variables_from_secrets_are_named_on_the_card_and_on_the_notebooks_page(
    open_page: Open, tenancy: Tenancy, ada: User, hub: HubOfTests, size: str, theme: str
) -> None:
    page = open_page(ada, PAGE, size=size, theme=theme)
    card = page.locator("#a100")
    field = card.get_by_label("Variables from Secrets")
    expect(field).to_be_hidden()
    card.get_by_text("Add variables from Secrets").press("Enter")
    field.fill("JUPYTERHUB_USER=huggingface:token")
    assert violations(page) == []
    assert overflow(page) <= 0
    card.get_by_role("button", name="Launch").click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was launched yet")
    expect(field).to_be_visible()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(card).to_contain_text("JUPYTERHUB_USER is set by JupyterHub")
    assert violations(page) == []
    assert overflow(page) <= 0

    field.fill("HF_TOKEN=huggingface:token\nWANDB_API_KEY=wandb:key")
    card.get_by_role("button", name="Launch").click()
    expect(page.locator("#facts")).to_contain_text(
        "HF_TOKEN from huggingface, WANDB_API_KEY from wandb"
    )
    assert len(NotebookServer.objects.get().secrets) == 2
    server = worked_on(NotebookServer.objects.get())
    NotebookServer.objects.update(
        message="The Secret huggingface, which it takes a value from, is not in its namespace.",
        secret_missed_at=timezone.now(),
    )
    page.goto(f"/notebooks/{server.pk}")
    expect(page.locator("#progress")).to_contain_text("Make it with kubectl")
    assert violations(page) == []
    assert overflow(page) <= 0

    actions.stop(server.pk, by=ada, now=timezone.now())
    worked_on(server)
    page.goto(f"/notebooks/{server.pk}")
    page.get_by_text("Change its variables from Secrets").press("Enter")
    field = page.get_by_label("Variables from Secrets", exact=False)
    field.fill("PATH=huggingface:token")
    assert violations(page) == []
    page.get_by_role("button", name="Start with these").click()
    expect(field).to_have_attribute("aria-invalid", "true")
    assert violations(page) == []
    assert overflow(page) <= 0
    field.fill("HF_TOKEN=ours:token")
    page.get_by_role("button", name="Start with these").click()
    expect(page.locator("#heading")).to_contain_text("Starting")
    expect(page.locator("#facts")).to_contain_text("HF_TOKEN from ours")
    page.context.close()


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_long_names_leave_room_for_what_can_be_done(
    open_page: Open, tenancy: Tenancy, ada: User, hub: HubOfTests, size: str, theme: str
) -> None:
    running(tenancy, ada, hub)
    NotebookServer.objects.update(
        title="Supercalifragilisticexpialidocious-Finetuning-Of-A-Detector"
    )
    User.objects.filter(pk=ada.pk).update(
        name="Ada Wolfeschlegelsteinhausenbergerdorff-Featherstonehaugh"
    )
    page = open_page(ada, PAGE, size=size, theme=theme)
    stop = page.get_by_role("button", name=re.compile("^Stop"))
    box, width = stop.bounding_box(), page.evaluate("innerWidth")
    assert box is not None
    assert box["x"] + box["width"] <= width
    assert overflow(page) == 0
    page.context.close()


def test_a_devcontainer_is_copied_with_the_keyboard(
    open_page: Open, tenancy: Tenancy, ada: User, hub: HubOfTests
) -> None:
    page = open_page(ada, PAGE)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = page.get_by_role(
        "button", name="Copy devcontainer.json of A100", exact=True
    )
    button.focus()
    page.keyboard.press("Enter")

    expect(page.locator("[data-status]")).to_have_text("Copied.")
    served = page.request.get("/profiles/a100/devcontainer.json").text()
    assert page.evaluate("navigator.clipboard.readText()") == served
    # It copies, and launches nothing.
    assert not NotebookServer.objects.exists()
    page.context.close()


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_everybody_can_use_the_pages(
    open_page: Open, tenancy: Tenancy, ada: User, hub: HubOfTests, size: str, theme: str
) -> None:
    mei = factories.person("Mei Chen", teams=[tenancy.team])
    copying = Copying(tenancy.cluster)
    copying.begin(*queue_of(tenancy))
    waits = worked_on(launch(tenancy, ada, key="waits"))
    copying.put(pod(waits))
    copying.put(workload(waits))
    ready = running(tenancy, ada, hub, key="ready", image="base")
    failed = worked_on(launch(tenancy, ada, key="failed"))
    hub.fail(failed.name, "Spawn failed: ImagePullBackOff. " * 4)
    worked_on(failed)
    idle = running(tenancy, ada, hub, key="idle")
    earlier = timezone.now() - timedelta(minutes=50)
    NotebookServer.objects.filter(pk=idle.pk).update(
        created_at=earlier,
        launched_at=earlier,
        ready_at=earlier,
        active_at=earlier,
        kept_times=1,
    )
    reclaim_idle(now=timezone.now())
    running(tenancy, mei, hub, key="mei", profile="cpu")
    page = open_page(ada, "/", size=size, theme=theme)
    paths = {
        "home": "/",
        "list": PAGE,
        "waiting": f"/notebooks/{waits.pk}",
        "ready": f"/notebooks/{ready.pk}",
        "failed": f"/notebooks/{failed.pk}",
        "idle": f"/notebooks/{idle.pk}",
        "keep": f"/notebooks/{idle.pk}/keep",
    }
    for path in paths.values():
        page.goto(path)
        assert (path, violations(page)) == (path, [])
        assert (path, overflow(page) <= 0) == (path, True)
    Hub.objects.update(
        reachable=False, message="Away.", failures=1, looked_at=timezone.now()
    )
    NotebookServer.objects.filter(pk=failed.pk).update(
        state=State.STOPPED, stop_reason="idle", message="", stopped_at=timezone.now()
    )
    page.goto(paths["failed"])
    assert violations(page) == []
    Hub.objects.all().delete()
    page.goto(PAGE)
    assert violations(page) == []
    page.context.close()


@pytest.mark.parametrize(("size", "theme"), LOOKS)
def test_platform_leads_can_use_what_says_which_notebooks_are_not_stopped_or_not_known(
    open_page: Open,
    tenancy: Tenancy,
    ada: User,
    lead: User,
    hub: HubOfTests,
    size: str,
    theme: str,
) -> None:
    now, earlier = timezone.now(), timezone.now() - timedelta(hours=3)
    server = running(tenancy, ada, hub)
    NotebookServer.objects.update(
        created_at=earlier, launched_at=earlier, ready_at=earlier, active_at=earlier
    )
    Cluster.objects.update(prometheus="monitoring/prometheus-operated:9090")
    reason = f"The board sees it on Friday: https://wiki.example.com/{'demo' * 20}"
    actions.exempt(
        server.pk, until=now + timedelta(days=3), reason=reason, by=lead, now=now
    )
    hub.start_inside("somebody.with.a.long.name@subsidiary.example.com", "theirs", {})
    hub.start_inside(str(ada.oid), "odd", {"profile": "no-such-profile"})
    follow(now=timezone.now)
    stopped = worked_on(launch(tenancy, ada, profile="cpu", key="stopped"))
    actions.stop(stopped.pk, by=ada, now=now)
    worked_on(stopped)
    retired("cpu", by=lead, successor="a100")
    page = open_page(lead, "/", size=size, theme=theme)
    hub_page = f"/hubs/{tenancy.cluster.name}"
    for path in (f"/notebooks/{server.pk}", f"/notebooks/{server.pk}/exempt", hub_page):
        page.goto(path)
        assert (path, violations(page)) == (path, [])
        assert (path, overflow(page) <= 0) == (path, True)
    page.get_by_role("button", name="End now").click()
    expect(page.locator("#heading")).to_contain_text("Ready")
    assert not NotebookServer.objects.exempt(now).exists()
    page.context.close()
    page = open_page(ada, PAGE, size=size, theme=theme)
    for path in ("/", PAGE, f"/notebooks/{stopped.pk}"):
        page.goto(path)
        assert (path, violations(page)) == (path, [])
        assert (path, overflow(page) <= 0) == (path, True)
    page.context.close()
