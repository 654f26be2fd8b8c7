"""Templates of runs as platform leads keep them: versions, files, who may, and what runs are made of afterwards."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
import yaml
from django.conf import settings
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from audit.models import Event
from tests import factories
from tests.calling import Caller
from tests.workloads.conftest import Watched
from tests.workloads.test_template_documents import VISION
from web.refusals import Conflict
from workloads.models import Run, TemplateVersion
from workloads.runs import actions as runs
from workloads.runs.planning.plan import Submission
from workloads.template_desk import actions
from workloads.template_desk.offered import offered
from workloads.templates.library import TEMPLATES

pytestmark = pytest.mark.django_db


@pytest.fixture
def lead() -> User:
    return factories.person("Priya Nair", Role.PLATFORM_LEAD)


@pytest.fixture
def page(lead: User) -> Client:
    """The lead's browser."""
    browser = Client()
    browser.force_login(lead)
    return browser


@pytest.fixture
def images() -> Iterator[list[str]]:
    """The list of allowed images, which is empty unless a test says otherwise."""
    allowed = settings.ENV.run_images
    yield allowed
    allowed.clear()


def keep(lead: User, text: str = VISION) -> TemplateVersion:
    """Offer a template."""
    return actions.keep(text, by=lead, now=timezone.now())


def test_a_version_is_offered_at_once_and_the_same_again_is_none(lead: User) -> None:
    first = keep(lead)
    assert (first.slug, first.number) == ("vision", 1)
    assert keep(lead).pk == first.pk
    second = keep(lead, VISION.replace("maximum: 4", "maximum: 6"))
    assert second.number == 2
    found = offered()
    assert [*found] == ["vision", *(one.slug for one in TEMPLATES)]
    assert found["vision"].version == 2
    assert [one.name for one in found["vision"].parameters][-3:] == [
        "rate",
        "epochs",
        "mixed",
    ]
    kinds = Event.objects.filter(subject_type="template", subject_id="vision").order_by(
        "seq"
    )
    browser = Client()
    browser.force_login(lead)
    assert "/templates/vision" in browser.get(f"/audit/{kinds[0].pk}/").content.decode()
    assert [(one.kind, one.details["version"]) for one in kinds] == [
        ("template.kept", 1),
        ("template.kept", 2),
    ]


def test_one_with_a_shipped_slug_takes_its_place_and_can_be_taken_back(
    lead: User,
) -> None:
    keep(
        lead,
        "{slug: sweep, title: Search, help: Ours., shape: sweep, parameters: {trials: {maximum: 20}}}",
    )
    assert offered()["sweep"].title == "Search"
    actions.take_back("sweep", by=lead, now=timezone.now())
    actions.take_back("nccl", by=lead, now=timezone.now())
    assert {one.slug for one in TEMPLATES} - {*offered()} == {"sweep", "nccl"}
    assert actions.take_back("nccl", by=lead, now=timezone.now()).number == 1
    keep(lead, TemplateVersion.objects.get(slug="nccl").text)
    assert offered()["nccl"].version == 2


def test_who_saw_an_older_version_is_told_and_nothing_is_lost(lead: User) -> None:
    keep(lead)
    changed = VISION.replace("maximum: 4", "maximum: 6")
    with pytest.raises(Conflict, match="Somebody kept version 1"):
        actions.keep(changed, by=lead, now=timezone.now(), slug="vision", seen=0)
    assert actions.keep(changed, by=lead, now=timezone.now(), seen=1).number == 2


def test_a_new_template_under_a_slug_that_is_taken_is_told_so(
    lead: User, page: Client
) -> None:
    keep(lead)
    changed = VISION.replace("maximum: 4", "maximum: 6")
    shown = page.post("/templates/new", {"seen": "0", "yaml": changed, "why": ""})
    assert shown.status_code == 422
    assert (
        "There is a template vision already. Choose another slug"
        in shown.content.decode()
    )
    assert "meanwhile" not in shown.content.decode()


def test_versions_are_never_changed(lead: User) -> None:
    keep(lead)
    with (
        pytest.raises(Exception, match="versions of templates are never changed"),
        connection.cursor() as cursor,
    ):
        cursor.execute("UPDATE workloads_templateversion SET text = ''")


def test_one_that_the_product_takes_no_longer_is_offered_no_longer_and_says_so(
    lead: User, page: Client
) -> None:
    TemplateVersion.objects.create(
        slug="old",
        number=1,
        title="Old one",
        text="shape: gone",
        by=lead,
        at=timezone.now(),
    )
    assert "old" not in offered()
    assert "Needs a change" in page.get("/templates").content.decode()
    assert (
        "takes this document no longer" in page.get("/templates/old").content.decode()
    )
    assert Caller(lead).get("templates/old/").json()["template"] is None


def test_only_platform_leads_keep_templates(lead: User) -> None:
    keep(lead)
    ada = factories.person("Ada Okafor")
    caller, browser = Caller(ada), Client()
    browser.force_login(ada)
    assert caller.get("templates/vision/").status_code == 403
    assert caller.put("templates/vision/", {"yaml": VISION}).status_code == 403
    assert caller.post("templates/vision/take-back/", {}).status_code == 403
    assert caller.get("templates/yaml/").status_code == 403
    assert caller.put("templates/yaml/", {"yaml": VISION}).status_code == 403
    for path in ("", "/new", "/vision", "/import", "/export"):
        assert browser.get(f"/templates{path}").status_code == 403
    assert browser.post("/templates/vision/take-back").status_code == 403
    assert TemplateVersion.objects.count() == 1
    [told] = [
        one
        for one in caller.get("templates/").json()["results"]
        if one["slug"] == "vision"
    ]
    assert (told["shape"], told["version"], told["gpu_memory"]) == (
        "single-node",
        1,
        40,
    )


def test_the_api_keeps_shows_and_takes_back(lead: User) -> None:
    caller = Caller(lead)
    body = yaml.safe_load(VISION)
    made = caller.put("templates/vision/", {"document": body, "reason": "Our recipe."})
    assert made.status_code == 200, made.content
    told = made.json()
    assert (told["number"], told["is_offered"], told["template"]["title"]) == (
        1,
        True,
        "Fine-tune a vision model",
    )
    assert told["versions"][0]["reason"] == "Our recipe."
    again = caller.put("templates/vision/", {"yaml": told["yaml"], "seen": 1})
    assert again.json()["number"] == 1
    stale = caller.put(
        "templates/vision/", {"yaml": VISION.replace("count", "text"), "seen": 0}
    )
    assert stale.status_code == 422
    old = caller.put(
        "templates/vision/",
        {"yaml": told["yaml"].replace("gpu_memory: 40", "gpu_memory: 20"), "seen": 0},
    )
    assert (old.status_code, old.json()["code"]) == (409, "template_changed")
    other = caller.put("templates/other/", {"yaml": VISION})
    assert (other.status_code, other.json()["code"]) == (422, "not_taken")
    back = caller.post("templates/vision/take-back/", {"reason": "Nobody needs it."})
    assert (back.json()["is_offered"], back.json()["template"]) == (False, None)
    assert caller.post("templates/nothing/take-back/", {}).status_code == 404
    assert caller.get("templates/nothing/").status_code == 404
    shipped = caller.get("templates/single-node/").json()
    assert (shipped["number"], shipped["versions"]) == (0, [])
    assert "shape: single-node" in shipped["yaml"]


def test_the_api_points_to_every_place_that_is_wrong(lead: User) -> None:
    body = yaml.safe_load(VISION) | {
        "shape": "pytorch",
        "parameters": {"nodes": {"maximum": 900}},
        "claims": [{}],
    }
    answer = Caller(lead).put("templates/vision/", {"document": body})
    assert answer.status_code == 422
    pointers = {one["pointer"] for one in answer.json()["errors"]}
    assert pointers == {
        "/document/claims/0/name",
        "/document/claims/0/path",
        "/document/parameters/nodes/maximum",
    }
    body["claims"] = []
    answer = Caller(lead).put("templates/vision/", {"document": body})
    assert [one["pointer"] for one in answer.json()["errors"]] == [
        "/document/parameters/nodes/maximum"
    ]
    assert Caller(lead).put("templates/vision/", {}).status_code == 422
    assert Caller(lead).put("templates/vision/", {"yaml": "a: [*x]"}).status_code == 422
    assert not TemplateVersion.objects.exists()


@pytest.mark.slow
def test_a_file_of_templates_goes_out_and_in_again_all_or_none(
    lead: User, page: Client
) -> None:
    keep(lead)
    keep(lead, "{slug: search, title: Search, help: Ours., shape: sweep}")
    text = Caller(lead).get("templates/yaml/").json()["yaml"]
    assert [one["slug"] for one in yaml.safe_load(text)["templates"]] == [
        "search",
        "vision",
    ]
    assert page.get("/templates/export").content.decode() == text
    for slug in ("vision", "search"):
        actions.take_back(slug, by=lead, now=timezone.now())
    broken = text.replace("shape: sweep", "shape: swept")
    refused = Caller(lead).put("templates/yaml/", {"yaml": broken})
    assert refused.status_code == 422
    assert "templates.0.shape" in refused.json()["errors"][0]["detail"]
    assert not {"vision", "search"} & {*offered()}
    taken = page.post(
        "/templates/import", {"yaml": text, "why": "From Git."}, follow=True
    )
    assert (
        "Offered from now on: Search, Fine-tune a vision model."
        in taken.content.decode()
    )
    assert {"vision", "search"} <= {*offered()}
    unchanged = page.post(
        "/templates/import", {"yaml": text, "why": ""}, follow=True
    ).content.decode()
    assert "All of it is offered so already." in unchanged
    assert "Offered from now on" not in unchanged
    changed = text.replace("help: Ours.", "help: Ours alone.")
    some = page.post(
        "/templates/import", {"yaml": changed, "why": ""}, follow=True
    ).content.decode()
    assert "Offered from now on: Search." in some
    both = yaml.safe_load(text)["templates"]
    both[0]["shape"], both[1]["shape"] = "swept", "other"
    shown = page.post(
        "/templates/import", {"yaml": yaml.safe_dump({"templates": both}), "why": ""}
    )
    assert "templates.0.shape" in shown.content.decode()
    assert "templates.1.shape" in shown.content.decode()
    shown = page.post("/templates/import", {"yaml": broken, "why": ""})
    assert shown.status_code == 422
    assert "templates.0.shape" in shown.content.decode()
    twice = page.post("/templates/import", {"yaml": "templates: []", "why": ""})
    assert "Write a list of 1 to 100 templates." in twice.content.decode()


def test_an_image_that_nobody_may_use_is_no_templates(
    lead: User, images: list[str]
) -> None:
    images.append("registry.example.com/safe/")
    with pytest.raises(actions.NotATemplate, match="Images come from:"):
        keep(lead)


@pytest.mark.slow
def test_the_page_begins_from_a_shape_keeps_and_goes_back(
    lead: User, page: Client
) -> None:
    begun = page.get("/templates/new?from=pytorch").content.decode()
    assert "shape: pytorch" in begun
    made = page.post("/templates/new", {"seen": "0", "yaml": VISION, "why": "Ours."})
    assert (made.status_code, made["Location"]) == (302, "/templates/vision")
    shown = page.get("/templates/vision").content.decode()
    for text in (
        "Learning rate",
        "LEARNING_RATE",
        "Nothing else",
        "1 to 90",
        "Ours.",
        "Offer it no longer",
    ):
        assert text in shown
    page.post(
        "/templates/vision",
        {"seen": "1", "yaml": VISION.replace("epochs", "rounds"), "why": ""},
    )
    older = page.get("/templates/vision?version=1").content.decode()
    assert "epochs:" in older
    assert page.get("/templates/vision?version=9").status_code == 404
    stale = page.post("/templates/vision", {"seen": "1", "yaml": VISION, "why": ""})
    assert stale.status_code == 409
    assert "Somebody kept version 2" in stale.content.decode()
    wrong = page.post(
        "/templates/vision",
        {"seen": "2", "yaml": VISION.replace("vision:3", "Vision:3"), "why": ""},
    )
    assert wrong.status_code == 422
    assert "images.0" in wrong.content.decode()
    assert "Vision:3" in wrong.content.decode()
    assert page.post("/templates/vision/take-back").status_code == 302
    assert "Taken back" in page.get("/templates/vision").content.decode()
    listed = page.get("/templates").content.decode()
    assert listed.index("Fine-tune a vision model") < listed.index("Single node")


def test_a_run_keeps_the_version_that_it_was_made_of(
    watched: Watched, lead: User
) -> None:
    keep(lead, VISION.replace("gpu_memory: 40", "").replace("priority: production", ""))
    ada, browser = watched.ada, Client()
    browser.force_login(ada)
    place = f"/teams/{watched.team.slug}/runs/new?place={watched.tenancy.pk}"
    cards = browser.get(place).content.decode()
    assert cards.index("Fine-tune a vision model") < cards.index("Single node")
    form = browser.get(f"{place}&template=vision").content.decode()
    for text in (
        "It mounts datasets at /data.",
        "It sets HF_HOME.",
        "The template sets it.",
        "Learning rate",
    ):
        assert text in form
    asked = Submission(
        template="vision", title="Try", flavor="a100", values={"rate": "0.1"}
    )
    run = runs.submit(watched.tenancy.pk, asked, by=ada, key="1", now=timezone.now())
    assert (run.template, run.template_version) == ("vision", 1)
    keep(lead, VISION.replace("Fine-tune a vision model", "Another name"))
    assert (
        "Fine-tune a vision model, version 1"
        in browser.get(f"/runs/{run.pk}").content.decode()
    )
    actions.take_back("vision", by=lead, now=timezone.now())
    again = Caller(ada).post(f"runs/{run.pk}/again/", {}, key="again")
    assert (again.status_code, again.json()["errors"][0]["pointer"]) == (
        422,
        "/template",
    )
    assert Run.objects.count() == 1
    assert run.created_at < timezone.now() + timedelta(minutes=1)
