"""Profiles as platform leads maintain them: versions, states, files, who may, by page and API."""

from collections.abc import Iterator
from functools import partial
from importlib import import_module

import pytest
import yaml
from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from audit.models import Event
from fleet.models import Cluster
from notebooks.models import Profile, ProfileVersion
from notebooks.profile_desk import actions
from notebooks.profile_desk.kept import offered, retired_words
from notebooks.profiles.states import LEGAL, State
from tests import factories
from tests.calling import Caller
from tests.concurrency.together import held_up
from tests.notebooks.documents import A100, CPU
from web.refusals import BadInput, Conflict, NoRight

pytestmark = pytest.mark.django_db
FITS = A100.replace("[vision, nlp]", "[vision]").replace("a100-1", "big")


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
def cluster() -> Cluster:
    """A cluster with A100s, and a team that works on it."""
    made = factories.cluster("training-eastus")
    flavor = factories.flavor(made, "a100", node_labels={"accelerator": "nvidia-a100"})
    ada = factories.person("Ada Okafor")
    team = factories.team("Vision", by=ada)
    factories.join(team, ada)
    tenancy = factories.tenancy(team, made)
    factories.allocation(ada, tenancy, flavor, gpus=1)
    return made


@pytest.fixture
def images() -> Iterator[list[str]]:
    """The list of allowed images, which is empty unless a test says otherwise."""
    allowed = settings.ENV.run_images
    yield allowed
    allowed.clear()


def save(lead: User, text: str = CPU) -> ProfileVersion:
    """Keep a version as a draft."""
    return actions.save(text, by=lead, now=timezone.now())


def publish(lead: User, text: str = CPU) -> Profile:
    """Let people choose a profile."""
    return actions.publish(save(lead, text).profile.slug, by=lead)


def test_the_moves_of_the_database_are_those_of_the_table() -> None:
    migration = import_module("notebooks.migrations.0001_initial")
    assert {key: set(value) for key, value in migration.PROFILES.items()} == {
        key.value: {each.value for each in value} for key, value in LEGAL.items()
    }


@pytest.mark.parametrize("before", [*State])
@pytest.mark.parametrize("after", [*State])
def test_the_database_makes_no_other_move(
    lead: User, before: State, after: State
) -> None:
    profile = save(lead).profile
    way = {
        State.DRAFT: [],
        State.PUBLISHED: [State.PUBLISHED],
        State.DEPRECATED: [State.PUBLISHED, State.DEPRECATED],
        State.RETIRED: [State.RETIRED],
    }
    for step in way[before]:
        Profile.objects.filter(pk=profile.pk).update(
            state=step, published=1, reason="Old."
        )
    rows = Profile.objects.filter(pk=profile.pk)
    if after is before or after in LEGAL[before]:
        rows.update(
            state=after, published=None if after is State.DRAFT else 1, reason="Old."
        )
        return
    with (
        pytest.raises(DatabaseError, match="a retired profile never comes back"),
        transaction.atomic(),
    ):
        rows.update(
            state=after, published=None if after is State.DRAFT else 1, reason="Old."
        )


def test_what_is_saved_is_a_draft_and_the_same_again_is_none(lead: User) -> None:
    first = save(lead)
    assert (first.number, first.profile.state, offered()) == (1, "draft", [])
    assert save(lead).pk == first.pk
    assert save(lead, CPU.replace("memory: 4", "memory: 8")).number == 2
    events = Event.objects.filter(subject_type="profile", subject_id="cpu").order_by(
        "seq"
    )
    assert [(one.kind, one.details["version"]) for one in events] == [
        ("profile.saved", 1),
        ("profile.saved", 2),
    ]
    browser = Client()
    browser.force_login(lead)
    assert "/profiles/cpu" in browser.get(f"/audit/{events[0].pk}/").content.decode()


def test_people_get_the_published_version_until_the_next_one_is_published(
    lead: User,
) -> None:
    publish(lead)
    save(lead, CPU.replace("memory: 4", "memory: 8"))
    [one] = offered()
    assert (one.number, one.document.memory) == (1, 4)
    actions.publish("cpu", by=lead, seen=2)
    [one] = offered()
    assert (one.number, one.document.memory) == (2, 8)


def test_a_draft_may_lack_what_publishing_asks_for(lead: User) -> None:
    save(lead, "{slug: later, title: Later}")
    with pytest.raises(actions.NotAProfile) as raised:
        actions.publish("later", by=lead)
    assert [place for place, _ in raised.value.problems] == ["image", "cpus", "memory"]
    assert Profile.objects.get().state == "draft"


def test_a_flavor_and_a_team_have_to_be_there(lead: User, cluster: Cluster) -> None:
    save(
        lead,
        FITS.replace("[vision]", "[nobody]").replace("flavor: a100", "flavor: h100"),
    )
    with pytest.raises(actions.NotAProfile) as raised:
        actions.publish("big", by=lead)
    assert {place for place, _ in raised.value.problems} == {"teams.0", "flavor"}
    assert publish(lead, FITS).state == "published"


def test_an_image_that_nobody_may_use_is_not_published(
    lead: User, images: list[str]
) -> None:
    images.append("registry.example.com/safe/")
    with pytest.raises(actions.NotAProfile, match="Images come from:"):
        publish(lead)


def test_a_deprecated_profile_says_why_and_what_instead_and_can_come_back(
    lead: User,
) -> None:
    publish(lead)
    publish(lead, CPU.replace("slug: cpu", "slug: larger"))
    with pytest.raises(BadInput, match="Say why"):
        actions.deprecate("cpu", by=lead, reason=" ")
    for wrong in ("nothing", "cpu"):
        with pytest.raises(BadInput, match="name a published profile"):
            actions.deprecate("cpu", by=lead, reason="Old.", successor=wrong)
    actions.deprecate("cpu", by=lead, reason="Its image is old.", successor="larger")
    told = {one.document.slug: (one.reason, one.successor) for one in offered()}
    assert told == {"cpu": ("Its image is old.", "larger"), "larger": ("", "")}
    again = actions.publish("cpu", by=lead)
    assert (again.state, again.reason, again.successor) == ("published", "", None)


def test_a_successor_that_is_retired_is_offered_no_longer(lead: User) -> None:
    publish(lead)
    publish(lead, CPU.replace("slug: cpu", "slug: larger"))
    actions.deprecate("cpu", by=lead, reason="Old.", successor="larger")
    actions.deprecate("larger", by=lead, reason="Old.")
    actions.retire("larger", by=lead, reason="Older.")
    [one] = offered()
    assert (one.document.slug, one.successor) == ("cpu", "")


@pytest.mark.django_db(transaction=True)
def test_two_that_are_retired_at_once_do_not_name_each_other(lead: User) -> None:
    two_deprecated(lead)
    first = partial(actions.retire, "cpu", by=lead, reason="Old.", successor="larger")
    other = partial(actions.retire, "larger", by=lead, reason="Old.", successor="cpu")

    with pytest.raises(BadInput, match="cannot choose “larger” instead"):
        held_up(first, by=other)

    states = Profile.objects.values_list("slug", "state", "successor__slug")
    assert [*states] == [("cpu", "deprecated", None), ("larger", "retired", "cpu")]


def test_two_that_name_each_other_are_followed_once(lead: User) -> None:
    two_deprecated(lead)
    actions.retire("cpu", by=lead, reason="Old.", successor="larger")
    profiles = Profile.objects.in_bulk(field_name="slug")
    Profile.objects.filter(slug="larger").update(
        state=State.RETIRED, successor=profiles["cpu"]
    )

    for profile in Profile.objects.all():
        assert retired_words(profile).endswith("Choose another one.")


def two_deprecated(lead: User) -> None:
    """Two profiles that people can still choose, and that can be retired."""
    publish(lead)
    publish(lead, CPU.replace("slug: cpu", "slug: larger"))
    for slug in ("cpu", "larger"):
        actions.deprecate(slug, by=lead, reason="Old.")


def test_a_published_profile_is_deprecated_before_it_is_retired_for_good(
    lead: User,
) -> None:
    publish(lead)
    with pytest.raises(Conflict, match="Deprecate it first"):
        actions.retire("cpu", by=lead, reason="Unsafe.")
    actions.deprecate("cpu", by=lead, reason="Unsafe.")
    actions.retire("cpu", by=lead, reason="Unsafe.")
    assert offered() == []
    assert actions.retire("cpu", by=lead, reason="Again.").reason == "Unsafe."
    for act in (
        lambda: actions.publish("cpu", by=lead),
        lambda: actions.deprecate("cpu", by=lead, reason="X."),
        lambda: save(lead, CPU.replace("memory: 4", "memory: 8")),
    ):
        with pytest.raises(Conflict):
            act()


def test_who_saw_an_older_version_is_told_and_nothing_is_lost(lead: User) -> None:
    save(lead)
    changed = CPU.replace("memory: 4", "memory: 8")
    with pytest.raises(Conflict, match="Somebody wrote version 1"):
        actions.save(changed, by=lead, now=timezone.now(), seen=0)
    actions.save(changed, by=lead, now=timezone.now(), seen=1)
    with pytest.raises(Conflict, match="Somebody wrote version 2"):
        actions.publish("cpu", by=lead, seen=1)


def test_versions_are_never_changed(lead: User) -> None:
    save(lead)
    with (
        pytest.raises(DatabaseError, match="versions of profiles are never changed"),
        transaction.atomic(),
    ):
        ProfileVersion.objects.update(text="")


def test_one_that_the_product_takes_no_longer_is_offered_no_longer(
    lead: User, page: Client
) -> None:
    publish(lead)
    profile = Profile.objects.get()
    profile.versions.create(
        number=2, title="Old", text="colour: red", by=lead, at=timezone.now()
    )
    Profile.objects.update(published=2)
    assert offered() == []
    assert "Needs a change" in page.get("/profiles").content.decode()
    assert "takes this document no longer" in page.get("/profiles/cpu").content.decode()


def test_only_platform_leads_maintain_profiles_and_everybody_sees_those_that_are_offered(
    lead: User,
) -> None:
    publish(lead)
    ada = factories.person("Ada Okafor")
    caller, browser = Caller(ada), Client()
    browser.force_login(ada)
    assert caller.get("profiles/cpu/").status_code == 403
    assert caller.put("profiles/cpu/", {"yaml": CPU}).status_code == 403
    for name in ("publish", "deprecate", "retire"):
        assert caller.post(f"profiles/cpu/{name}/", {}).status_code == 403
    assert caller.get("profiles/yaml/").status_code == 403
    assert caller.put("profiles/yaml/", {"yaml": "[]"}).status_code == 403
    for path in ("", "/new", "/cpu", "/import", "/export", "/cpu/end"):
        assert browser.get(f"/profiles{path}").status_code == 403
    assert browser.post("/profiles/cpu/publish").status_code == 403
    with pytest.raises(NoRight):
        save(ada, A100)
    [told] = caller.get("profiles/").json()["results"]
    assert (
        told["slug"],
        told["number"],
        told["document"]["memory"],
        told["is_deprecated"],
    ) == (
        "cpu",
        1,
        4,
        False,
    )


def test_the_api_saves_publishes_deprecates_and_retires(lead: User) -> None:
    caller = Caller(lead)
    made = caller.put(
        "profiles/cpu/", {"document": yaml.safe_load(CPU), "reason": "For all."}
    )
    assert made.status_code == 200, made.content
    told = made.json()
    assert (told["state"], told["number"], told["published"], told["missing"]) == (
        "draft",
        1,
        None,
        [],
    )
    assert told["versions"][0]["reason"] == "For all."
    assert (
        caller.put("profiles/cpu/", {"yaml": told["yaml"], "seen": 1}).json()["number"]
        == 1
    )
    assert caller.post("profiles/cpu/publish/", {"seen": 1}).json()["published"] == 1
    old = caller.put(
        "profiles/cpu/", {"yaml": CPU.replace("memory: 4", "memory: 8"), "seen": 0}
    )
    assert (old.status_code, old.json()["code"]) == (409, "profile_changed")
    gone = caller.post("profiles/cpu/retire/", {"reason": "Old."})
    assert (gone.status_code, gone.json()["code"]) == (409, "not_in_this_state")
    assert (
        caller.post("profiles/cpu/deprecate/", {"reason": "Old."}).json()["state"]
        == "deprecated"
    )
    assert caller.get("profiles/").json()["results"][0]["reason"] == "Old."
    last = caller.post("profiles/cpu/retire/", {"reason": "Older."}).json()
    assert (last["state"], last["reason"], last["successor"], last["missing"]) == (
        "retired",
        "Older.",
        None,
        [],
    )
    assert caller.put("profiles/other/", {"yaml": CPU}).status_code == 422
    for path in ("profiles/nothing/", "profiles/nothing/publish/"):
        assert (
            caller.get(path) if path.endswith("nothing/") else caller.post(path, {})
        ).status_code == 404


def test_the_api_takes_nothing_that_it_does_not_know(lead: User) -> None:
    caller = Caller(lead)
    save(lead)
    assert (
        caller.put("profiles/cpu/", {"yaml": CPU, "colour": "red"}).status_code == 422
    )
    assert caller.put("profiles/cpu/", {"yaml": CPU, "document": {}}).status_code == 422
    assert caller.post("profiles/cpu/publish/", {"force": True}).status_code == 422
    assert (
        caller.post(
            "profiles/cpu/retire/", {"reason": "X.", "colour": "red"}
        ).status_code
        == 422
    )
    assert caller.post("profiles/cpu/retire/", {}).status_code == 422
    wrong = caller.put(
        "profiles/cpu/",
        {"document": yaml.safe_load(CPU) | {"volumes": [{}], "colour": "red"}},
    )
    pointers = {one["pointer"] for one in wrong.json()["errors"]}
    assert pointers == {
        "/document/volumes/0/name",
        "/document/volumes/0/path",
        "/document/colour",
    }
    save(lead, "{slug: later, title: Later}")
    lacking = caller.post("profiles/later/publish/", {})
    assert (lacking.status_code, lacking.json()["errors"][0]["pointer"]) == (
        422,
        "/document/image",
    )


@pytest.mark.slow
def test_a_file_goes_out_and_in_again_all_or_none(lead: User, page: Client) -> None:
    publish(lead)
    save(lead, A100)
    text = Caller(lead).get("profiles/yaml/").json()["yaml"]
    assert [one["slug"] for one in yaml.safe_load(text)["profile_list"]] == [
        "a100-1",
        "cpu",
    ]
    assert page.get("/profiles/export").content.decode() == text
    before = ProfileVersion.objects.count()
    assert Caller(lead).put("profiles/yaml/", {"yaml": text}).json()["yaml"] == text
    assert ProfileVersion.objects.count() == before
    broken = text.replace("mem_limit: 4G", "mem_limit: .nan")
    refused = Caller(lead).put("profiles/yaml/", {"yaml": broken})
    assert refused.status_code == 422
    assert "1.overrides.mem_limit" in refused.json()["errors"][0]["detail"]
    shown = page.post("/profiles/import", {"yaml": broken, "reason": ""})
    assert shown.status_code == 422
    assert "1.overrides.mem_limit" in shown.content.decode()
    taken = page.post(
        "/profiles/import", {"yaml": text.replace("4G", "8G"), "reason": "Git."}
    )
    assert taken.status_code == 302
    assert ProfileVersion.objects.get(profile__slug="cpu", number=2).why == "Git."
    assert page.get("/profiles/import").status_code == 200
    assert page.post("/profiles/import", {"yaml": "", "reason": ""}).status_code == 422


@pytest.mark.slow
def test_a_profile_is_written_published_and_taken_away_on_its_page(
    lead: User, page: Client, cluster: Cluster
) -> None:
    assert "slug:" in page.get("/profiles/new").content.decode()
    assert "No profile yet" in page.get("/profiles").content.decode()
    made = page.post("/profiles/new", {"seen": "0", "yaml": FITS, "reason": "First."})
    assert (made.status_code, made.headers["Location"]) == (302, "/profiles/big")
    shown = page.get("/profiles/big").content.decode()
    assert "Publish" in shown
    assert "accelerator: nvidia-a100" in shown
    # The team holds one GPU, so a server with two is no choice there.
    assert "title: 2 GPUs" in shown
    assert "display_name: 2 GPUs" not in shown
    assert page.post("/profiles/big/publish", {"seen": "1"}).status_code == 302
    assert "$3.67 to $7.34 an hour" in page.get("/profiles").content.decode()
    page.post(
        "/profiles/big",
        {"seen": "1", "yaml": FITS.replace("cpus: 8", "cpus: 4"), "reason": ""},
    )
    assert (
        "People get version 1. Version 2 is a draft."
        in page.get("/profiles/big").content.decode()
    )
    stale = page.post("/profiles/big/publish", {"seen": "1"}, follow=True)
    assert "Somebody wrote version 2" in stale.content.decode()
    wrong = page.post(
        "/profiles/big", {"seen": "2", "yaml": "slug: big\ncolour: red", "reason": ""}
    )
    assert wrong.status_code == 422
    assert "There is no such key." in wrong.content.decode()
    assert "cpus: 8" in page.get("/profiles/big?version=1").content.decode()
    assert page.get("/profiles/big?version=9").status_code == 404
    assert page.get("/profiles/nothing").status_code == 404
    assert (
        page.post(
            "/profiles/big/end", {"do": "retire", "reason": "X.", "successor": ""}
        ).status_code
        == 409
    )
    assert (
        page.post(
            "/profiles/big/end", {"do": "deprecate", "reason": "", "successor": ""}
        ).status_code
        == 422
    )
    page.post(
        "/profiles/big/end",
        {"do": "deprecate", "reason": "Too large.", "successor": ""},
    )
    assert "Too large." in page.get("/profiles/big").content.decode()
    page.post("/profiles/big/end", {"do": "retire", "reason": "Gone.", "successor": ""})
    assert "Nobody can choose it." in page.get("/profiles/big").content.decode()
    assert "It is retired" in page.get("/profiles/big/end").content.decode()
    begun = page.get("/profiles/new?from=big").content.decode()
    assert "slug: big" not in begun


def test_a_preview_says_why_a_namespace_gets_nothing(
    lead: User, page: Client, cluster: Cluster
) -> None:
    save(lead, FITS.replace("[vision]", "[speech]"))
    assert (
        "This profile is not for your team."
        in page.get("/profiles/big").content.decode()
    )
    save(lead, FITS.replace("gpus: 1", "gpus: 4"))
    assert (
        "The team holds fewer GPUs there" in page.get("/profiles/big").content.decode()
    )


@pytest.mark.slow
@pytest.mark.parametrize("many", [5, 50])
def test_lists_ask_as_often_for_many_profiles_as_for_few(
    lead: User, page: Client, many: int
) -> None:
    for number in range(many):
        publish(lead, CPU.replace("slug: cpu", f"slug: cpu-{number}"))
    caller = Caller(lead)
    counted = []
    for ask in (lambda: page.get("/profiles"), lambda: caller.get("profiles/")):
        ask()
        with CaptureQueriesContext(connection) as captured:
            assert ask().status_code == 200
        counted.append(len(captured))
    assert counted == [7, 3]
