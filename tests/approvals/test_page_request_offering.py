"""Asking on the page for anything but GPUs, and how what was asked for reads afterwards."""

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from approvals.decisions import actions as decisions
from approvals.fulfilment import actions as fulfilment
from approvals.models import Request
from audit.models import RefusalCount
from catalogue import actions as offering_actions
from fleet.models import Flavor
from manual.models import Task
from notices.models import Notice
from tests import factories
from tests.approvals.shop import SPECS
from tests.calling import Caller
from tests.scene import Scene
from ui.amounts import moment

OTHERS = [key for key in SPECS if key != "gpus"]
REASON = "The review on Friday needs it."


@pytest.fixture
def page(client: Client, scene: Scene) -> Client:
    """Ada's browser; there is a second cluster where her team is not yet."""
    factories.cluster("dev")
    factories.notebooks_on(scene.flavor.cluster)
    client.force_login(scene.ada)
    return client


def text(response: Any) -> str:
    """What the page says."""
    return str(response.content.decode())


def values(key: str, **changes: Any) -> dict[str, str]:
    """The form as Ada fills it in."""
    spec = {name: str(value) for name, value in SPECS[key].items()}
    if key == "training":
        del spec["purpose"]
    until = (timezone.now() + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M")
    usual = {"team": "vision", **spec, "until": until, "reason": REASON, "token": "one"}
    return {
        name: value for name, value in (usual | changes).items() if value is not None
    }


@pytest.mark.slow
@pytest.mark.parametrize("key", OTHERS)
def test_every_offering_has_a_form_that_starts_with_what_is_possible(
    page: Client, key: str
) -> None:
    response = page.get(f"/requests/new/{key}")
    shown = text(response)
    assert response.status_code == 200
    assert "Once it is granted" in shown
    assert "Nothing was sent yet" not in shown
    for name in values(key):
        assert f'name="{name}"' in shown or name == "reason"


@pytest.mark.slow
@pytest.mark.parametrize("key", OTHERS)
def test_every_offering_is_asked_for_on_the_page_and_reads_well_from_then_on(
    page: Client, scene: Scene, key: str
) -> None:
    shown = page.post(f"/requests/preview/{key}", values(key)).context["answer"]
    response = page.post(f"/requests/new/{key}", values(key))
    asked = Request.objects.get()
    assert (response.status_code, response["Location"]) == (
        302,
        f"/requests/{asked.pk}/",
    )
    assert asked.spec == SPECS[key]
    assert shown["verdict"]["sentence"] == asked.evaluations.get().answer["sentence"]
    for person, address in (
        (scene.ada, f"/requests/{asked.pk}/"),
        (scene.ada, "/requests/"),
        (scene.priya, f"/approvals/{asked.pk}/"),
        (scene.priya, "/approvals/"),
    ):
        page.force_login(person)
        said = re.sub(r"<[^>]+>", " ", text(page.get(address)))
        # What takes GPUs may say that there were none before.
        odd = r"None|\b0 A100" if "flavor" in SPECS[key] else r"None|\b0 A100|\b0 GPU"
        assert not re.search(odd, said), (address, key)


def test_a_new_form_says_what_the_answer_waits_for_and_calls_nothing_wrong(
    page: Client,
) -> None:
    shown = text(page.get("/requests/new/volume"))
    assert "Name: still to be filled in" in shown
    assert "aria-invalid" not in shown
    filled = text(page.get("/requests/new/volume?name=street-scenes"))
    assert "still to be filled in" not in filled


def test_gpus_have_the_same_form_and_what_is_unknown_has_none(page: Client) -> None:
    shown = text(page.get("/requests/new/gpus"))
    assert "Once it is granted" in shown
    assert 'href="/catalogue/"' in shown
    assert page.get("/requests/new/nothing").status_code == 404


def test_lists_hold_only_what_the_team_can_have(page: Client, scene: Scene) -> None:
    factories.flavor(factories.cluster("other"), "secret")
    shown = text(page.get("/requests/new/notebook"))
    assert "training/a100" in shown
    assert "secret" not in shown
    assert 'value="training"' in text(page.get("/requests/new/volume"))
    elsewhere = text(page.get("/requests/new/namespace"))
    assert 'value="dev"' in elsewhere
    assert 'value="training" selected' not in elsewhere
    offering_actions.change("openai", by=scene.priya, prices={"gpt-4o": None})
    assert 'value="gpt-4o"' not in text(page.get("/requests/new/openai"))


def test_what_would_be_refused_when_it_is_sent_is_said_beside_the_form(
    page: Client, scene: Scene
) -> None:
    speech_has_another_cluster(scene)
    answer = page.post("/requests/preview/notebook", values("notebook", team="speech"))
    assert answer.context["answer"] is None
    [lack] = answer.context["lacks"]
    assert "JupyterHub" in lack["text"]


@pytest.mark.slow
@pytest.mark.parametrize("key", ["gpus", "training", "endpoint"])
def test_gpus_that_are_taken_back_are_nobodys_first_choice_and_say_so(
    page: Client, scene: Scene, key: str
) -> None:
    spot = factories.flavor(
        scene.flavor.cluster,
        "a100-spot",
        price_per_gpu_hour=Decimal("0.40"),
        capacity_type="spot",
        node_labels={"accelerator": "spot"},
    )
    shown = page.get(f"/requests/new/{key}")
    assert shown.context["form"]["flavor"].value() == "training/a100"
    answer = page.get(f"/requests/new/{key}", {"flavor": spot.key, "model": "m"})
    assert "A100 (spot)" in answer.context["answer"]["button"]
    assert "Quota, A100 (spot)" in text(answer)


@pytest.mark.slow
def test_what_is_held_says_that_it_is_taken_back(page: Client, scene: Scene) -> None:
    spot = factories.flavor(
        scene.flavor.cluster,
        "a100-spot",
        capacity_type="spot",
        node_labels={"accelerator": "spot"},
    )
    held = factories.allocation(scene.ada, scene.tenancy, spot)
    for path in ("/", "/teams/vision/"):
        assert "1 × A100 80 GB (spot)" in text(page.get(path))
    for path in (
        "/requests/",
        f"/allocations/{held.pk}/give-back",
        f"/allocations/{held.pk}/renew",
    ):
        assert "1 × A100 (spot)" in text(page.get(path))


def test_what_takes_no_gpus_is_not_renewed_and_the_api_says_how_it_is_kept(
    page: Client, scene: Scene
) -> None:
    page.post("/requests/new/volume", values("volume"))
    made = Request.objects.get()
    refused = Caller(scene.ada).post(f"requests/{made.pk}/renew/", {})
    assert (refused.status_code, refused.json()["code"]) == (409, "not_renewable")
    assert "Ask for it again once it has ended" in refused.json()["detail"]


def test_a_granted_namespace_tells_its_environment_once(
    page: Client, scene: Scene
) -> None:
    page.post("/requests/new/namespace", values("namespace"))
    facts = page.get(f"/requests/{Request.objects.get().pk}/").context["facts"]
    assert [fact["label"] for fact in facts].count("Environment") == 1


def test_a_link_fills_the_form_and_what_is_sent_stays_when_it_is_refused(
    page: Client,
) -> None:
    assert 'value="77"' in text(page.get("/requests/new/volume", {"gib": "77"}))
    answer = page.post("/requests/new/volume", values("volume", gib="0", name="kept"))
    assert answer.status_code == 422
    assert 'value="kept"' in text(answer)
    assert 'href="#id_gib"' in text(answer)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "changes", "said"),
    [
        (
            "volume",
            {"name": "Not Small"},
            "Use small letters, digits and hyphens, at most 40: a letter first, and no hyphen last.",
        ),
        ("volume", {"cluster": "dev"}, "Choose one of the list."),
        ("training", {"gpus": "7"}, "At least 8."),
        ("notebook", {"gpus": "9"}, "from 1 to 8"),
        (
            "notebook",
            {"flavor": "training/none"},
            "Choose a kind of GPU that is offered where the team is.",
        ),
        ("openai", {"region": "moon"}, "Choose one of the list."),
        ("cluster", {"vm_size": "Standard_Free"}, "Choose one of the list."),
        ("endpoint", {"reason": ""}, "Say in a sentence what it is for."),
        ("endpoint", {"reason": "because"}, "in at least 10 characters."),
        ("volume", {"team": "speech"}, "Choose one of your teams."),
        ("volume", {"until": "2020-01-01T00:00"}, "The end must lie in the future."),
        ("volume", {"price": "0"}, "There is no field “price” here."),
    ],
)
def test_what_does_not_fit_is_said_at_its_field(
    page: Client, key: str, changes: dict[str, str], said: str
) -> None:
    answer = page.post(f"/requests/new/{key}", values(key, **changes))
    assert answer.status_code == 422
    assert said in text(answer)
    assert not Request.objects.exists()
    assert RefusalCount.objects.get(status=422).count == 1


@pytest.mark.slow
@pytest.mark.parametrize("key", OTHERS)
def test_sending_it_twice_asks_once(page: Client, key: str) -> None:
    asked = values(key)
    first, second = (page.post(f"/requests/new/{key}", asked) for _ in range(2))
    assert second.status_code == 302
    assert first["Location"] == second["Location"]
    assert Request.objects.count() == 1


def test_a_form_that_was_sent_is_refused_with_other_values(page: Client) -> None:
    page.post("/requests/new/volume", values("volume"))
    assert (
        page.post("/requests/new/volume", values("volume", gib="7")).status_code == 409
    )
    assert Request.objects.count() == 1


def test_what_changed_after_the_answer_is_answered_again_first(page: Client) -> None:
    answer = page.post("/requests/new/volume", values("volume", answered="old"))
    assert answer.status_code == 422
    assert "You changed it after this answer." in text(answer)


def test_the_preview_writes_nothing_and_swaps_what_follows_the_team(
    page: Client, scene: Scene
) -> None:
    speech = factories.team("Speech")
    factories.join(speech, scene.ada)
    shown = text(page.post("/requests/preview/volume", values("volume", team="speech")))
    assert 'id="field-cluster" hx-swap-oob="outerMorph"' in shown
    assert "The team is on no cluster." in shown
    assert not Request.objects.exists()
    assert 'name="reason"' not in text(
        page.post("/requests/preview/volume", values("volume"))
    )
    assert 'name="reason"' in text(
        page.post("/requests/preview/openai", values("openai"))
    )


@pytest.mark.slow
@pytest.mark.parametrize("key", ["training", "endpoint"])
def test_another_team_brings_a_kind_of_gpu_that_it_can_have(
    page: Client, scene: Scene, key: str
) -> None:
    speech_has_another_cluster(scene)
    said = values(key, team="speech")
    for answer in (
        page.post(f"/requests/preview/{key}", said),
        page.post(f"/requests/new/{key}", said | {"check": "1"}),
    ):
        shown = text(answer)
        assert '<option value="speech/h100" selected>' in shown
        assert "Choose one of the list." not in shown
        assert "H100" in answer.context["answer"]["button"]


def test_the_lists_of_a_team_come_with_every_answer(page: Client, scene: Scene) -> None:
    speech_has_another_cluster(scene)
    back = text(page.post("/requests/preview/notebook", values("notebook")))
    assert '<option value="training/a100" selected>' in back
    assert 'value="speech/h100"' not in back


def test_what_cannot_be_chosen_is_not_shown_as_chosen(
    page: Client, scene: Scene
) -> None:
    speech_has_another_cluster(scene)
    answer = page.post("/requests/new/notebook", values("notebook", team="speech"))
    assert answer.status_code == 422
    assert '<option value="">Choose one</option>' in text(answer)
    assert 'value="speech/h100" selected' not in text(answer)


@pytest.fixture
def t4(scene: Scene) -> Flavor:
    """A kind of GPU that Vision's cluster does not have, with a profile that comes first."""
    kind = factories.flavor(factories.cluster("cheap"), "t4-16gb", product="T4")
    factories.notebooks_on(kind.cluster, slug="a-first", flavor=kind.name)
    return kind


def test_a_notebook_starts_with_a_profile_that_takes_the_gpus_of_the_team(
    page: Client, t4: Flavor
) -> None:
    form = page.get("/requests/new/notebook?team=vision").context["form"]
    assert (form["flavor"].value(), form["profile"].value()) == (
        "training/a100",
        "pytorch",
    )


def test_a_notebook_starts_with_gpus_that_a_profile_takes(
    page: Client, scene: Scene
) -> None:
    cheaper = factories.flavor(
        scene.flavor.cluster, "v100", price_per_gpu_hour=Decimal("0.10")
    )
    form = page.get("/requests/new/notebook").context["form"]
    assert form["flavor"].value() == "training/a100"
    linked = page.get("/requests/new/notebook", {"flavor": cheaper.key})
    assert linked.context["form"]["flavor"].value() == cheaper.key


def test_a_profile_that_takes_other_gpus_names_them_as_people_do(
    page: Client, t4: Flavor
) -> None:
    shown = page.get("/requests/new/notebook", {"profile": "a-first"})
    assert "PyTorch · T4" in text(shown)
    assert shown.context["lacks"] == [
        {
            "text": "Profile: PyTorch takes GPUs of the kind T4. Choose another.",
            "field": "profile",
        }
    ]


def speech_has_another_cluster(scene: Scene) -> None:
    """Ada is in a second team, with another kind of GPU on another cluster."""
    speech = factories.team("Speech")
    factories.join(speech, scene.ada)
    kind = factories.flavor(factories.cluster("speech"), "h100", product="H100")
    factories.tenancy(speech, kind.cluster)


@pytest.mark.slow
@pytest.mark.parametrize("key", ["volume", "namespace"])
def test_what_takes_no_gpus_has_an_end_ahead_until_it_is_over(
    page: Client, scene: Scene, key: str
) -> None:
    page.post(
        f"/requests/new/{key}",
        values(key, **({"cluster": "dev"} if key == "namespace" else {})),
    )
    asked = Request.objects.get()
    said = text(page.get(f"/requests/{asked.pk}/"))
    assert "Setting up" in said
    assert_it_is_not_over(said)
    asked.refresh_from_db()
    assert asked.tenancy is not None
    factories.make_true(asked.tenancy, at=timezone.now() + timedelta(seconds=1))
    said = text(page.get(f"/requests/{asked.pk}/"))
    assert "In place" in said
    assert_it_is_not_over(said)
    page.post(f"/requests/{asked.pk}/let-go")
    said = text(page.get(f"/requests/{asked.pk}/"))
    assert "Was until" in said
    assert moment(timezone.now(), timezone.now()).rsplit(", ", 1)[0] in said
    assert "Ask again" in said


def assert_it_is_not_over(said: str) -> None:
    assert "Was until" not in said
    assert ">Ends<" in said
    assert "Ask again" not in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "changes", "about"),
    [
        ("cluster", {"purpose": "development"}, "of Vision, for development"),
        ("training", {}, "of Vision, for training"),
        ("endpoint", {}, "of Vision, for inference"),
        ("openai", {}, "of Vision"),
    ],
)
def test_who_decides_reads_what_it_was_asked_for(
    page: Client, scene: Scene, key: str, changes: dict[str, str], about: str
) -> None:
    page.post(f"/requests/new/{key}", values(key, **changes))
    page.force_login(scene.priya)
    assert (
        page.get(f"/approvals/{Request.objects.get().pk}/").context["requester"]["role"]
        == about
    )


@pytest.mark.slow
def test_a_request_shows_who_carries_it_out_and_can_be_let_go(
    page: Client, scene: Scene
) -> None:
    page.post("/requests/new/openai", values("openai"))
    asked = Request.objects.get()
    decisions.approve(asked.pk, by=scene.priya, expected_version=1, now=timezone.now())
    waiting = text(page.get(f"/requests/{asked.pk}/"))
    assert "nobody has taken it yet" in waiting
    assert "Nobody sets it up any more; it has cost nothing." in waiting
    fulfilment.finish(
        Task.objects.get().pk, by=scene.priya, note="It answers.", now=timezone.now()
    )
    shown = text(page.get(f"/requests/{asked.pk}/"))
    assert "It answers." in shown
    assert "Let it go" in shown
    assert page.post(f"/requests/{asked.pk}/let-go").status_code == 302
    gone = text(page.get(f"/requests/{asked.pk}/"))
    assert "Let go early" in gone
    assert "To be taken down" in gone
    assert "/requests/new/openai?team=vision" in gone


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "lost"),
    [
        ("volume", "then takes the volume corpus down, with everything on it."),
        ("namespace", "then takes the namespace of main down, with everything in it."),
    ],
)
def test_letting_go_asks_first_and_says_what_is_lost(
    page: Client, scene: Scene, key: str, lost: str
) -> None:
    page.post(
        f"/requests/new/{key}",
        values(
            key, **({"cluster": "dev", "project": "main"} if key == "namespace" else {})
        ),
    )
    asked = Request.objects.get()
    said = text(page.get(f"/requests/{asked.pk}/"))
    question = said[said.index("<details") : said.index("/let-go")]
    assert "<summary" in question
    assert lost in said
    assert "What it will not cost is free again." in said


@pytest.mark.slow
def test_tasks_are_taken_given_and_finished_in_the_browser(
    page: Client, scene: Scene
) -> None:
    page.post("/requests/new/endpoint", values("endpoint"))
    for lead in (scene.priya, scene.elena):
        row = Request.objects.get()
        if row.state == "waiting":
            decisions.approve(
                row.pk, by=lead, expected_version=row.version, now=timezone.now()
            )
    asked, task = Request.objects.get(), Task.objects.get()
    assert page.get("/tasks/").status_code == 403
    page.force_login(scene.priya)
    assert "Set up an endpoint of 2 × 1 A100" in text(page.get("/tasks/"))
    assert "To carry out" in text(page.get("/"))
    taken = page.post(f"/tasks/{task.pk}/", {"do": "take", "version": "1"})
    assert taken["Location"] == f"/requests/{asked.pk}/"
    assert "Set up an endpoint of 2 × 1 A100" in text(page.get("/tasks/?show=mine"))
    stale = page.post(
        f"/tasks/{task.pk}/", {"do": "give", "to": str(scene.marcus.pk), "version": "1"}
    )
    assert stale.status_code == 412
    assert (
        page.post(
            f"/tasks/{task.pk}/", {"do": "done", "version": "2", "note": ""}
        ).status_code
        == 422
    )
    kept = page.post(
        f"/tasks/{task.pk}/", {"do": "cannot", "version": "1", "note": "Full."}
    )
    assert (kept.status_code, ">Full.</textarea>" in text(kept)) == (412, True)
    page.post(f"/tasks/{task.pk}/", {"do": "done", "version": "2", "note": "There."})
    assert "Set up an endpoint of 2 × 1 A100" in text(page.get("/tasks/?show=over"))
    assert "Nothing is to be done" in text(page.get("/tasks/"))


@pytest.mark.slow
def test_lists_of_held_and_ended_know_what_takes_no_gpus(
    page: Client, scene: Scene
) -> None:
    page.post("/requests/new/volume", values("volume"))
    page.post("/requests/new/openai", values("openai", token="two"))
    asked = Request.objects.get(offering="openai")
    decisions.approve(asked.pk, by=scene.priya, expected_version=1, now=timezone.now())
    fulfilment.finish(
        Task.objects.get(request_number=asked.pk).pk,
        by=scene.priya,
        note="None left.",
        failed=True,
        now=timezone.now(),
    )
    held, ended = (
        text(page.get("/requests/", {"state": state})) for state in ("held", "ended")
    )
    assert ("volume corpus" in held, "gpt-4o-mini with" in held) == (True, False)
    assert ("volume corpus" in ended, "gpt-4o-mini with" in ended) == (False, True)
    assert "Failed" in ended


@pytest.mark.slow
@pytest.mark.parametrize("key", ["volume", "openai"])
def test_who_is_not_of_the_team_says_why_it_is_taken_back(
    page: Client, scene: Scene, key: str
) -> None:
    page.post(f"/requests/new/{key}", values(key))
    asked = Request.objects.get()
    if key == "openai":
        decisions.approve(
            asked.pk, by=scene.priya, expected_version=1, now=timezone.now()
        )
    asked.refresh_from_db()
    assert "Why you take it back" not in text(page.get(f"/requests/{asked.pk}/"))
    page.force_login(scene.priya)
    assert "Why you take it back" in text(page.get(f"/requests/{asked.pk}/"))
    page.post(f"/requests/{asked.pk}/let-go")
    asked.refresh_from_db()
    assert asked.allocation is not None
    assert asked.allocation.ended_at is None
    assert "Say why" in text(page.get(f"/requests/{asked.pk}/"))
    page.post(f"/requests/{asked.pk}/let-go", {"reason": "The disks are replaced."})
    gone = text(page.get(f"/requests/{asked.pk}/"))
    assert "Taken back for the platform" in gone
    assert "Priya Raman took" in gone
    assert "The disks are replaced." in gone
    assert "Let go early" not in gone
    [told] = Notice.objects.filter(kind="allocation_ending", person=scene.ada)
    assert "The disks are replaced." in told.message["sentence"]


def test_what_its_team_lets_go_says_who_did_it(page: Client, scene: Scene) -> None:
    page.post("/requests/new/volume", values("volume"))
    asked = Request.objects.get()
    page.post(f"/requests/{asked.pk}/let-go")
    entries = page.get(f"/requests/{asked.pk}/").context["timeline"]
    over = next(one for one in entries if one["title"] == "Let go early")
    assert over["who"] == scene.ada.name


def test_nobody_is_asked_about_what_belongs_to_somebody_who_left(
    page: Client, scene: Scene
) -> None:
    page.post("/requests/new/volume", values("volume"))
    asked = Request.objects.get()
    words = f"A platform lead asks {scene.ada.name}, then takes"
    assert words in text(page.get(f"/requests/{asked.pk}/"))
    ben = factories.person("Ben Ruiz", teams=[scene.team])
    scene.ada.memberships.all().delete()
    page.force_login(ben)
    said = text(page.get(f"/requests/{asked.pk}/"))
    assert words not in said
    assert "A platform lead takes the volume corpus down" in said
