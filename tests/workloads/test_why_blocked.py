"""Why a run is not sent yet that waits for another one: in the same words on its page, over the API and in its list."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from provisioning.models import Tenancy
from tests import factories
from tests.calling import Caller
from tests.pages import parsed
from tests.workloads.test_runs_after import place_of_team
from ui.amounts import moment
from workloads.models import Run
from workloads.runs.blocked import explain_blocked, explain_not_taken

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
HELPER = (
    "A helper of the cluster, most often Kueue or Volcano, does not answer; nothing can be made "
    "without it."
)


@pytest.fixture
def ada(db: None) -> User:
    return factories.person("Ada Okafor", teams=[factories.team("Vision")])


@pytest.fixture
def tenancy(ada: User) -> Tenancy:
    return place_of_team(ada)


def train(tenancy: Tenancy, by: User, **fields: Any) -> Run:
    return factories.run(
        tenancy, by, **{"title": "Train", "limit_seconds": 14_400, **fields}
    )


def evaluate(before: Run, **fields: Any) -> Run:
    """A run that waits for another one."""
    return factories.run(
        before.tenancy,
        before.requester,
        **{"title": "Evaluate", "state": "blocked", "after": before, **fields},
    )


def test_page_api_and_list_give_one_reason(tenancy: Tenancy, ada: User) -> None:
    now = timezone.now()
    first = train(
        tenancy,
        ada,
        state="running",
        created_at=now - HOUR,
        started_at=now - HOUR,
        running_since=now - HOUR,
    )
    run = evaluate(first, created_at=now - HOUR / 2)
    api = Caller(ada)

    why = api.get(f"runs/{run.pk}/").json()["why"]

    until = moment(now + 3 * HOUR, now)
    assert (why["code"], why["outlook"]) == ("waits_for_run", "wait")
    assert why["since"] == api.get(f"runs/{run.pk}/").json()["created_at"]
    said = {
        "what": f"It begins when run {first.pk}, Train, has finished.",
        "line": "It is sent to the cluster then, and takes its place in the line.",
        "when": f"Run {first.pk} runs until {until} at the latest.",
        "do": f"Wait: it is sent by itself. If run {first.pk} does not finish, this one is skipped.",
    }
    assert {key: why[key] for key in said} == said
    [listed] = api.get("runs/?state=blocked&why=true").json()["results"]
    assert listed["why"] == why
    [listed] = api.get("runs/?state=blocked").json()["results"]
    assert listed["why"] is None
    browser = Client()
    browser.force_login(ada)
    words = parsed(browser.get(f"/runs/{run.pk}").content.decode()).words
    assert [each for each in said.values() if each not in words] == []
    assert f"Open run {first.pk}" in words


@pytest.mark.parametrize(
    ("fields", "code", "when"),
    [
        pytest.param(
            {"state": "waiting"},
            "waits_for_run",
            "Run {} does not run now, so nobody can say when.",
            id="the other one waits",
        ),
        pytest.param(
            {"state": "running", "stop_asked_at": timezone.now()},
            "waits_for_stopped_run",
            "Never, unless run {} finishes before it is stopped.",
            id="the other one is being stopped",
        ),
    ],
)
def test_it_says_what_is_known_of_the_other_one(
    tenancy: Tenancy, ada: User, fields: dict[str, Any], code: str, when: str
) -> None:
    if "stop_asked_at" in fields:
        fields = {**fields, "stop_asked_by": ada}
    first = train(tenancy, ada, **fields)

    why = explain_blocked(evaluate(first), now=timezone.now())

    assert why is not None
    assert (why.code, why.when) == (code, when.format(first.pk))


def test_no_time_that_is_over_is_said_to_come(tenancy: Tenancy, ada: User) -> None:
    """Kubernetes ends it a moment after its limit."""
    now = timezone.now()
    begun = now - 4 * HOUR
    times = {"created_at": begun, "started_at": begun, "running_since": begun}
    first = train(tenancy, ada, state="running", **times)

    why = explain_blocked(evaluate(first), now=now + HOUR / 60)

    assert why is not None
    assert (
        why.when == f"Run {first.pk} has reached its time limit, and is about to end."
    )


def test_what_waited_for_another_run_is_not_taken_since_that_one_has_finished(
    tenancy: Tenancy, ada: User
) -> None:
    now = timezone.now()
    first = train(
        tenancy, ada, state="finished", created_at=now - 9 * HOUR, ended_at=now - HOUR
    )
    message = "503 ServiceUnavailable: busy"
    run = evaluate(first, state="submitted", message=message, created_at=now - 8 * HOUR)
    later = evaluate(first, state="submitted", message=message, created_at=now)
    rows = Run.objects.described()
    for one, since in ((run, now - HOUR), (later, now)):
        why = explain_not_taken(rows.get(pk=one.pk))
        assert why is not None
        assert why.since == since


def test_one_behind_a_run_that_waits_for_another_itself_says_so(
    tenancy: Tenancy, ada: User
) -> None:
    second = evaluate(train(tenancy, ada))

    why = explain_blocked(evaluate(second), now=timezone.now())

    assert why is not None
    assert (
        why.when
        == f"Run {second.pk} waits for another run itself, so nobody can say when."
    )


@pytest.mark.slow
@pytest.mark.parametrize("state", ["submitted", "skipped", "stopped"])
def test_what_waits_for_no_other_run_any_more_is_not_explained_by_it(
    tenancy: Tenancy, ada: User, state: str
) -> None:
    now, fields = timezone.now(), dict[str, Any]()
    if state != "submitted":
        fields["ended_at"] = now
    if state == "stopped":
        fields |= {"stop_asked_at": now, "stop_asked_by": ada}
    run = evaluate(train(tenancy, ada), state=state, **fields)

    assert explain_blocked(run, now=now) is None
    assert Caller(ada).get(f"runs/{run.pk}/").json()["why"] is None


@pytest.mark.slow
def test_the_answer_of_stop_names_all_that_is_skipped_with_it(
    tenancy: Tenancy, ada: User
) -> None:
    first = train(tenancy, ada, state="running")
    second = evaluate(first)
    third = evaluate(second, title="Report")
    evaluate(train(tenancy, ada), title="Of another one")
    evaluate(
        first, state="stopped", ended_at=timezone.now(), title="Is over", **by(ada)
    )
    api = Caller(ada)
    browser = Client()
    browser.force_login(ada)
    page = parsed(browser.get(f"/runs/{first.pk}").content.decode()).words
    assert "What waits for it is skipped: Evaluate, Report." in page

    def skipped(run: Run) -> list[dict[str, Any]]:
        answer = api.send("POST", f"runs/{run.pk}/stop/")
        assert answer.status_code == 200
        found: list[dict[str, Any]] = answer.json()["skipped"]
        return found

    both = [
        {"id": one.pk, "name": one.name, "title": one.title} for one in (second, third)
    ]
    assert skipped(first) == both
    assert skipped(third) == []


def test_what_waited_for_a_run_that_ends_at_once_is_named_each_time_it_is_stopped(
    tenancy: Tenancy, ada: User
) -> None:
    second = evaluate(train(tenancy, ada))
    third = evaluate(second, title="Report")
    api = Caller(ada)

    answers = [api.send("POST", f"runs/{second.pk}/stop/").json() for _ in range(2)]

    assert [each["state"] for each in answers] == ["stopped", "stopped"]
    assert [[one["id"] for one in each["skipped"]] for each in answers] == [
        [third.pk],
        [third.pk],
    ]


def by(person: User) -> dict[str, Any]:
    """What a run has that was asked to stop."""
    return {"stop_asked_at": timezone.now(), "stop_asked_by": person}


def test_what_the_cluster_does_not_take_is_told_in_words_and_quoted_for_experts(
    tenancy: Tenancy, ada: User
) -> None:
    """As while Kueue is away: what an API server says then is for nobody who trains."""
    refusal = 'failed calling webhook "mjob.kb.io": failed to call webhook: no endpoints available'
    run = train(
        tenancy,
        ada,
        state="submitted",
        message=f"500 InternalError: Internal error occurred: {refusal}",
    )
    why = Caller(ada).get(f"runs/{run.pk}/").json()["why"]
    assert (why["code"], why["outlook"]) == ("not_on_cluster", "escalate")
    said = (
        f"It is not on the cluster yet. {HELPER}",
        "It is tried again by itself.",
        "A platform lead looks at its pods.",
    )
    assert (why["what"], why["when"], why["do"]) == said
    [listed] = Caller(ada).get("runs/?why=true").json()["results"]
    assert listed["why"] == why
    browser = Client()
    browser.force_login(ada)
    words = parsed(browser.get(f"/runs/{run.pk}").content.decode()).words
    assert [each for each in (*said, refusal) if each not in words] == []


@pytest.mark.parametrize(
    ("message", "outlook"),
    [
        ("429 TooManyRequests: the server is busy", "wait"),
        ("409 Conflict: the object has been modified", "wait"),
        ("403 Forbidden: jobs is forbidden", "escalate"),
        ("The cluster a does not answer.", "escalate"),
    ],
)
def test_nobody_has_to_act_where_there_is_nothing_to_do(
    tenancy: Tenancy, ada: User, message: str, outlook: str
) -> None:
    run = train(tenancy, ada, state="submitted", message=message)
    why = Caller(ada).get(f"runs/{run.pk}/").json()["why"]
    assert (why["outlook"], why["do"] == "There is nothing to do.") == (
        outlook,
        outlook == "wait",
    )


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"message": ""}, id="nothing was met"),
        pytest.param(
            {"message": "500 busy", "stop_asked_at": timezone.now()}, id="being stopped"
        ),
    ],
)
def test_a_run_that_is_just_being_sent_has_no_reason(
    tenancy: Tenancy, ada: User, fields: dict[str, Any]
) -> None:
    if "stop_asked_at" in fields:
        fields = {**fields, "stop_asked_by": ada}
    run = train(tenancy, ada, state="submitted", **fields)
    assert Caller(ada).get(f"runs/{run.pk}/").json()["why"] is None
