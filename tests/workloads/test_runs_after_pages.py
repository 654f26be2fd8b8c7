"""The pages of runs that begin when another one has finished: the form, the run, and the other one."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import User
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from tests.pages import parsed
from tests.workloads.test_runs_after import ASKED, after, end, place_of_team, submit
from tests.workloads.test_runs_page import filled
from ui.amounts import moment
from workloads.models import Run

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def ada(db: None) -> User:
    return factories.person("Ada Okafor", teams=[factories.team("Vision")])


@pytest.fixture
def tenancy(ada: User) -> Tenancy:
    return place_of_team(ada)


def client(user: User) -> Client:
    found = Client()
    found.force_login(user)
    return found


@pytest.mark.slow
def test_the_form_offers_what_goes_on_and_submits_what_is_chosen(
    tenancy: Tenancy, ada: User
) -> None:
    browser, team = client(ada), tenancy.team.slug
    where = f"/teams/{team}/runs/new?template=single-node"
    assert "Begins after" not in browser.get(where).content.decode()
    first = submit(tenancy, ada, ASKED)
    opened = browser.get(where)
    assert f"Train, run {first.pk}: being sent" in opened.content.decode()
    typed = filled(opened, title="Evaluate", after=str(first.pk), token="one")
    preview = where.replace("/new?", "/new/preview?")
    answer = browser.post(preview, typed).content.decode()
    assert "It begins when Train has finished" in answer
    sent = browser.post(where, typed)
    run = Run.objects.get(after=first)
    assert sent["Location"] == f"/runs/{run.pk}"
    end(first, "failed")
    refused = browser.post(where, {**typed, "token": "two"})
    assert refused.status_code == 422
    assert f"Run {first.pk} did not finish: failed." in refused.content.decode()
    assert "Begins after" not in browser.get(where).content.decode()


@pytest.mark.slow
def test_a_link_chooses_the_run_to_wait_for_and_one_of_others_chooses_none(
    tenancy: Tenancy, ada: User
) -> None:
    mallory = factories.person("Mallory", teams=[factories.team("Speech")])
    theirs = submit(place_of_team(mallory, "inference"), mallory)
    first = submit(tenancy, ada, ASKED)
    browser, team = client(ada), tenancy.team.slug
    cards = browser.get(f"/teams/{team}/runs/new?after={first.pk}").content.decode()
    assert f"after={first.pk}&amp;place={tenancy.pk}&amp;template=single-node" in cards

    def chosen(query: str) -> str:
        where = f"/teams/{team}/runs/new?template=single-node&{query}"
        answer = browser.get(where)
        assert answer.status_code == 200
        return str(answer.context["form"].data.get("after", ""))

    assert chosen(f"after={first.pk}") == str(first.pk)
    for nothing in (f"after={theirs.pk}", "after=x", "after=", "after=" + "9" * 30):
        assert chosen(nothing) == ""
    run = submit(tenancy, ada, after(first))
    assert chosen(f"again={run.pk}") == str(first.pk)
    end(first, "failed")
    assert chosen(f"again={run.pk}") == ""


@pytest.mark.slow
def test_its_page_and_that_of_the_other_one_lead_to_each_other(
    tenancy: Tenancy, ada: User
) -> None:
    first = submit(tenancy, ada, ASKED)
    run = submit(tenancy, ada, after(first))
    browser = client(ada)

    def shown(one: Run) -> str:
        return str(parsed(browser.get(f"/runs/{one.pk}").content.decode()).words)

    before, behind = shown(first), shown(run)
    assert "Then: Evaluate" in before
    assert "Run something after it" in before
    assert "Waits for another run" in behind
    said = f"It begins when run {first.pk}, Train, has finished."
    assert said in behind
    assert "Nothing of it is on the cluster." in behind
    table = browser.get(f"/teams/{tenancy.team.slug}/runs").content.decode()
    assert "Waits for another run" in table
    end(first, "failed")
    skipped = browser.get(f"/runs/{run.pk}").content.decode()
    words = parsed(skipped).words
    assert "The run that it waited for did not finish, and nothing ran." in words
    assert f"It waited for run {first.pk}, Train: failed." in words
    assert 'id="logs"' not in skipped
    assert "Run something after it" not in shown(first)


def test_lists_name_the_run_that_one_waits_for_and_its_page_says_until_when(
    tenancy: Tenancy, ada: User
) -> None:
    now = timezone.now()
    first = factories.run(
        tenancy,
        ada,
        title="Train",
        state="running",
        created_at=now - HOUR,
        started_at=now - HOUR,
        running_since=now - HOUR,
        limit_seconds=4 * 3_600,
    )
    run = factories.run(
        tenancy, ada, title="Evaluate", state="blocked", after=first, flavor=None
    )
    browser = client(ada)

    def shown(path: str) -> str:
        return str(parsed(browser.get(path).content.decode()).words)

    assert "after Train" in shown(f"/teams/{tenancy.team.slug}/runs")
    assert "after Train, submitted just now" in shown("/")
    until = moment(now + 3 * HOUR, now)
    said = f"Run {first.pk} runs until {until} at the latest."
    assert said in shown(f"/runs/{run.pk}")
    [listed] = Caller(ada).get("runs/?state=blocked").json()["results"]
    assert listed["after_name"] == first.name
    Run.objects.filter(pk=run.pk).update(state="submitted")
    assert "after Train" not in shown(f"/teams/{tenancy.team.slug}/runs")


def test_a_list_asks_no_more_of_many_that_wait(tenancy: Tenancy, ada: User) -> None:
    browser, where = client(ada), f"/teams/{tenancy.team.slug}/runs"

    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            browser.get(where)
        return len(found)

    first = factories.run(tenancy, ada)
    factories.run(tenancy, ada, state="blocked", after=first)
    browser.get(where)
    few = queries()
    for _ in range(10):
        factories.run(tenancy, ada, state="blocked", after=first)
    assert queries() == few
