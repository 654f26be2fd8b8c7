"""The wizard as a browser without script sees it, with groups from the sandbox's directory."""

import re
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import caches
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounts.models import Membership, Team, User
from accounts.roles import Role
from approvals.models import Request
from audit.models import RefusalCount
from fleet.models import Cluster, Flavor
from onboarding.models import Onboarding
from sandbox.world import person_id
from tests import factories
from tests.sandbox.entra.running import Running
from tests.services.redis import Redis

pytestmark = pytest.mark.django_db
GENOMICS, CLIMATE, SPEECH = (str(factories.group_oid(n)) for n in (10, 9, 3))
WHO = {"name": "Genomics", "entra_group": GENOMICS, "cost_centre": "CC-4711"}
WHERE = {"project": "main", "environment": "dev", "cluster": "training"}


@pytest.fixture
def ada() -> User:
    return factories.person("Ada Okafor", oid=person_id(1), groups=[GENOMICS])


@pytest.fixture
def a100() -> Flavor:
    return factories.flavor(
        factories.cluster("training", title="Training East US"), "a100"
    )


@pytest.fixture
def browser(client: Client, ada: User, a100: Flavor, directory: Running) -> Client:
    client.force_login(ada)
    return client


def begin(browser: Client) -> str:
    """The address that the first step posts to."""
    page = browser.get("/teams/new").content.decode()
    found = re.search(r'action="(/teams/new\?draft=[^"]+)"', page)
    assert found
    return found[1].replace("&amp;", "&")


def fill(browser: Client, upto: str, who: dict[str, str] = WHO, **start: Any) -> str:
    """Fill the steps before one; its address."""
    answer = browser.post(begin(browser), who)
    for step, values in (("where", WHERE), ("start", {"size": "none"} | start)):
        assert answer.status_code == 302, answer.content.decode()
        if step == upto:
            break
        answer = browser.post(answer["Location"], values)
    assert answer.status_code == 302, answer.content.decode()
    return str(answer["Location"])


def test_the_review_promises_no_gpus_that_people_have_to_grant(
    browser: Client, a100: Flavor
) -> None:
    reason = "Eight cards for the first training."
    review = fill(
        browser, "review", size=f"{a100.pk}:8:3", purpose="training", reason=reason
    )
    page = " ".join(browser.get(review).content.decode().split())
    assert "and asks for 8 × A100 until" in page
    assert "which people decide" in page
    assert f"Why: <bdi>{reason}</bdi>" in page


def test_four_steps_bring_a_team_on_board_with_its_first_gpus(
    browser: Client, a100: Flavor, ada: User
) -> None:
    review = fill(browser, "review", size=f"{a100.pk}:2:7", purpose="training")
    page = " ".join(browser.get(review).content.decode().split())
    assert (
        "<bdi>Genomics</bdi> gets a space on <bdi>Training East US</bdi> with 2 × A100"
        in page
    )
    assert (
        page.count("qm-genomics-main-") == 3
    )  # the space, its namespace and its queue
    assert "Bring Genomics on board" in page

    sent = browser.post(review)
    assert sent["Location"] == "/teams/genomics/onboarding"
    done = Onboarding.objects.get()
    assert (done.team.cost_centre, done.tenancy.environment, done.by) == (
        "CC-4711",
        "dev",
        ada,
    )
    assert done.request is not None
    assert done.request.state == "approved"
    assert Membership.objects.get(team=done.team, user=ada).part == Membership.Part.LEAD
    assert browser.get("/teams/genomics/onboarding").status_code == 200


def test_on_a_cluster_by_git_no_seconds_are_promised_that_others_take(
    browser: Client, a100: Flavor
) -> None:
    Cluster.objects.update(
        delivery=Cluster.Delivery.GIT, git_url="https://git.example/clusters.git"
    )
    page = browser.get(
        fill(browser, "review", size=f"{a100.pk}:2:7", purpose="training")
    ).content.decode()
    assert "committed to Git in about 5 seconds" in page
    assert (
        "Automatic. Committed to Git in about 5 seconds, yours once the cluster follows."
        in page
    )
    assert "Yours in about 5 seconds" not in page


def test_sending_it_twice_brings_one_team_on_board(browser: Client) -> None:
    review = fill(browser, "review")
    first, second = browser.post(review), browser.post(review)
    assert first["Location"] == second["Location"] == "/teams/genomics/onboarding"
    assert Team.objects.count() == Onboarding.objects.count() == 1


def test_sent_again_while_the_directory_is_away_it_leads_to_the_same_place(
    browser: Client, directory: Running
) -> None:
    review = fill(browser, "review")
    first = browser.post(review)
    directory.admin("POST", "/sandbox/faults", path="/v1.0", status=503, times=99)
    assert browser.post(review)["Location"] == first["Location"]


def test_the_directory_is_asked_before_anything_is_locked(
    browser: Client, directory: Running
) -> None:
    review = fill(browser, "review")
    asked: list[bool] = []

    def watch(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        asked.append("accounts_idempotency" in sql and sql.startswith("INSERT"))
        return execute(sql, params, many, context)

    directory.admin("POST", "/sandbox/faults", path="/v1.0", status=503, times=99)
    with connection.execute_wrapper(watch):
        assert browser.post(review).status_code == 503
    assert not any(asked)


def test_a_team_may_start_with_nothing(browser: Client) -> None:
    browser.post(fill(browser, "review"))
    assert not Request.objects.exists()
    assert Onboarding.objects.get().tenancy.generation == 1


def test_no_step_can_be_skipped(browser: Client) -> None:
    address = begin(browser).replace("step=who", "step=review")
    assert (
        "step=who" in browser.get(address)["Location"]
        or browser.get(address)["Location"] == "/teams/new"
    )
    where = fill(browser, "where")
    assert browser.get(where.replace("step=where", "step=review"))["Location"] == where


def test_a_draft_of_somebody_else_is_gone(browser: Client, directory: Running) -> None:
    where = fill(browser, "where")
    other = Client()
    other.force_login(factories.person("Ben", oid=person_id(2)))
    assert other.get(where)["Location"] == "/teams/new"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": ""}, "Nothing stands here yet"),
        ({"name": "kube-system"}, "reserved for the platform"),
        ({"name": "V\u0456sion"}, "Write each word in one script"),
        ({"name": "Vision"}, "There is a team of this name already"),
        ({"cost_centre": "CC 4711"}, "Use up to 20 letters, digits and hyphens"),
        ({"cost_centre": "-4711"}, "beginning and ending with a letter or digit"),
        ({"cost_centre": "{{7*7}}"}, "Use up to 20 letters"),
        ({"entra_group": ""}, "Choose the group"),
        ({"entra_group": "vision-team"}, "no object id of a group"),
        ({"entra_group": SPEECH}, "You are not a member of this group"),
        ({"entra_group": str(factories.group_oid(77))}, "Entra ID has no such group"),
        ({"entra_group": str(factories.group_oid(1))}, "This group has a team already"),
    ],
)
def test_the_first_step_says_what_is_wrong_at_its_field_and_keeps_the_rest(
    browser: Client, change: dict[str, str], words: str
) -> None:
    factories.team("Vision", entra_group=factories.group_oid(1))
    answer = browser.post(begin(browser), WHO | change)
    page = answer.content.decode()
    assert answer.status_code == 422
    assert words in page
    kept = (WHO | change)["cost_centre"]
    assert f'value="{kept.replace("{", "{")}"' in page
    assert RefusalCount.objects.get(status=422).count == 1
    assert Team.objects.count() == 1


def test_typed_text_never_becomes_markup(browser: Client) -> None:
    page = browser.post(
        begin(browser), WHO | {"name": '"><script>alert(1)</script>'}
    ).content.decode()
    assert "<script>alert(1)" not in page


def test_a_platform_lead_may_bring_any_group(
    browser: Client, directory: Running
) -> None:
    browser.force_login(
        factories.person("Priya Raman", Role.PLATFORM_LEAD, oid=person_id(4))
    )
    fill(browser, "where", WHO | {"entra_group": SPEECH})


def test_the_search_works_without_script(browser: Client) -> None:
    page = browser.post(
        begin(browser), WHO | {"group_search": "clim", "search": "1"}
    ).content.decode()
    assert CLIMATE in page
    assert 'value="Genomics"' in page


def test_the_list_says_why_a_group_cannot_be_chosen(browser: Client) -> None:
    factories.team("Climate", entra_group=factories.group_oid(9))
    answer = browser.get("/teams/new/groups?group_search=speech").content.decode()
    assert "You are not a member of it." in answer
    assert "disabled" in answer
    # Whose it is they may not see.
    said = browser.get("/teams/new/groups?group_search=clim").content.decode()
    assert "It is another team’s already." in said
    assert "Climate’s" not in said
    assert (
        "No group begins like"
        in browser.get("/teams/new/groups?group_search=zzz").content.decode()
    )
    assert GENOMICS in browser.get("/teams/new/groups").content.decode()


def test_it_can_be_begun_while_the_directory_is_away_but_not_finished(
    browser: Client, directory: Running
) -> None:
    review = fill(browser, "review")
    directory.admin("POST", "/sandbox/faults", path="/v1.0", status=503, times=99)
    assert "does not answer" in browser.get("/teams/new").content.decode()
    assert browser.get(review).status_code == 200
    answer = browser.post(review)
    assert answer.status_code == 503
    assert b"Nothing was created." in answer.content
    assert not Team.objects.exists()


def test_a_dead_cache_costs_questions_to_the_directory_and_nothing_else(
    browser: Client,
    settings: Settings,
    own_redis: Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.CACHES = {
        "default": settings.CACHES["default"] | {"LOCATION": own_redis.url()}
    }
    monkeypatch.setattr("onboarding.groups.cache", caches["default"])
    own_redis.kill()
    assert GENOMICS in browser.get("/teams/new/groups").content.decode()


def test_what_was_taken_meanwhile_is_said_on_the_last_step(browser: Client) -> None:
    review = fill(browser, "review")
    factories.team("Genomics")
    answer = browser.post(review)
    assert answer.status_code == 409
    assert "There is a team of this name already" in answer.content.decode()


def test_a_cluster_that_takes_no_teams_is_not_offered(browser: Client) -> None:
    Cluster.objects.update(enabled=False)
    answer = browser.post(fill(browser, "where"), WHERE)
    assert answer.status_code == 422
    assert "This cluster takes no teams now" in answer.content.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    "size", ["1:1", "x:y:z", "99999:1:1", "-1:2:3", "exact", "²:1:1"]
)
def test_a_size_that_is_none_is_refused(browser: Client, size: str) -> None:
    assert browser.post(fill(browser, "start"), {"size": size}).status_code == 422


@pytest.mark.slow
def test_what_people_decide_needs_a_reason(browser: Client, a100: Flavor) -> None:
    start = fill(browser, "start")
    wanted = {
        "size": "exact",
        "flavor": str(a100.pk),
        "gpus": "16",
        "days": "7",
        "purpose": "training",
    }
    answer = browser.post(start, wanted)
    assert answer.status_code == 422
    assert "A person decides this." in answer.content.decode()
    sent = browser.post(start, wanted | {"reason": "Pretrain on the November genomes."})
    browser.post(sent["Location"])
    assert Request.objects.get().state == "waiting"


def test_more_than_there_is_cannot_be_asked_for(browser: Client, a100: Flavor) -> None:
    wanted = {
        "size": "exact",
        "flavor": str(a100.pk),
        "gpus": "25",
        "days": "7",
        "reason": "All of them, please.",
    }
    answer = browser.post(fill(browser, "start"), wanted)
    assert answer.status_code == 422
    assert "25" in answer.content.decode().split("summary__title")[1].split("</ul>")[0]


def test_what_the_person_waits_for_in_another_team_counts_as_in_the_request_itself(
    browser: Client, ada: User, a100: Flavor
) -> None:
    start = fill(browser, "start").replace("/teams/new?", "/teams/new/preview?")
    asked = {"size": "exact", "flavor": str(a100.pk), "days": "3", "gpus": "4"}
    before = browser.post(start, asked).content.decode()
    assert "engineering leadership decide" not in before
    other = factories.tenancy(factories.team("Other"), a100.cluster)
    factories.join(other.team, ada)
    factories.request(ada, other, a100, gpus=6, now=timezone.now())
    after = browser.post(start, asked).content.decode()
    assert "Platform leads, then engineering leadership decide" in after


def test_the_answer_comes_while_typing(browser: Client, a100: Flavor) -> None:
    start = fill(browser, "start").replace("/teams/new?", "/teams/new/preview?")

    def say(**values: str) -> str:
        return browser.post(start, values).content.decode()

    assert "Automatic." in say(size=f"{a100.pk}:2:7")
    exactly = {"size": "exact", "flavor": str(a100.pk), "days": "3"}
    assert "Platform leads, then engineering leadership decide." in say(
        **exactly, gpus="16"
    )
    assert "Automatic for 2" in say(**exactly, gpus="4")
    assert "The space, and no GPUs yet" in say(size="none")
    assert "the answer appears here" in say(**exactly, gpus="")
    assert not Request.objects.exists()


def test_the_review_names_the_registry_and_counts_objects_as_every_page_does(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    review = fill(browser, "review")
    before = browser.get(review).context["objects"]
    monkeypatch.setattr(settings.ENV, "azure_subscription_id", "one")
    monkeypatch.setattr(settings.ENV, "azure_registry", "/registries/gpuplatform")
    shown = browser.get(review).context
    assert [each["name"] for each in shown["objects"][len(before) :]] == ["gpuplatform"]
    assert shown["objects_note"].startswith(
        f"{len(before)} objects and access to the registry, "
    )


def test_the_two_bindings_say_what_each_is_for(browser: Client) -> None:
    objects = browser.get(fill(browser, "review")).context["objects"]
    plain = [each["plain"] for each in objects if each["kind"] == "RoleBinding"]
    assert plain == [
        "the group may work here",
        "the portal may start the team’s runs here",
    ]


def test_a_reason_is_optional_only_where_the_policy_decides(
    browser: Client, a100: Flavor
) -> None:
    start = fill(browser, "start")
    preview = start.replace("/teams/new?", "/teams/new/preview?")

    def label(size: str, address: str = preview) -> str:
        shown = browser.post(address, {"size": size}).content.decode()
        return shown.split('for="id_reason"')[1].split("</label>")[0]

    assert "(optional)" in label(f"{a100.pk}:2:7")
    assert "(optional)" not in label(f"{a100.pk}:8:7")
    assert "(optional)" not in label(f"{a100.pk}:8:7", start)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (
            "name=Vision",
            "Free. Its short name, in addresses and on clusters, is vision.",
        ),
        ("name=kube-system", "reserved"),
        ("cost_centre=CC-1", "Costs go to CC-1."),
        ("cost_centre=CC 1", "hyphens"),
        ("project=main", "The space will be called qm-team-main-"),
        ("name=", ""),
        ("", ""),
        ("nothing=x", ""),
    ],
)
def test_a_field_is_checked_while_it_is_typed(
    browser: Client, query: str, words: str
) -> None:
    answer = browser.get(f"/teams/new/check?{query}")
    assert answer.status_code == 200
    assert words in answer.content.decode()


def test_the_name_of_a_team_that_was_renamed_is_not_called_free(
    browser: Client,
) -> None:
    factories.team("Climate", slug="vision")
    answer = browser.get("/teams/new/check?name=climate").content.decode()
    assert "There is a team of this name already." in answer


@pytest.mark.slow
@pytest.mark.parametrize(
    "gpus", ["８", "8 ", "1.0", "+1", "-1", "0", "NaN", "1e2", "9" * 20]
)
def test_a_number_that_is_not_plainly_written_is_refused_at_its_field(
    browser: Client, a100: Flavor, gpus: str
) -> None:
    exact = {"size": "exact", "flavor": a100.pk, "days": "7", "purpose": "training"}
    answer = browser.post(fill(browser, "start"), exact | {"gpus": gpus})
    assert answer.status_code == 422
    assert list(answer.context["form"].errors) == ["gpus"]


@pytest.mark.slow
@pytest.mark.parametrize("step", ["who", "where", "start"])
def test_a_field_that_a_step_does_not_have_is_never_ignored(
    browser: Client, step: str
) -> None:
    values: dict[str, dict[str, str]] = {
        "who": WHO,
        "where": WHERE,
        "start": {"size": "none"},
    }
    address = begin(browser) if step == "who" else fill(browser, step)
    answer = browser.post(address, values[step] | {"labels": "x"})
    assert answer.status_code == 422
    assert "There is no field “labels” here." in answer.content.decode()
