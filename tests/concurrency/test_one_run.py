"""Runs that are submitted at the same moment: each is there once, and no more live than may."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from django.utils import timezone

from accounts.models import Membership, User
from audit.models import Event
from provisioning.models import Tenancy
from tests import factories
from tests.concurrency.together import held_up, together
from web.refusals import Conflict, NoRight
from workloads.models import Run
from workloads.runs import actions
from workloads.runs.planning.plan import Submission

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 5
ASKED = Submission(
    template="single-node",
    title="Fine-tune BERT",
    flavor="a100",
    values={
        "image": "registry.example.com/vision/train:1",
        "program": ("train.py",),
        "gpus": 1,
    },
)


@pytest.fixture
def ada(transactional_db: None) -> User:
    return factories.person("Ada Okafor", teams=[factories.team("Vision")])


@pytest.fixture
def tenancy(ada: User) -> Tenancy:
    """A namespace with 2 A100 that is set up."""
    cluster = factories.cluster("training")
    a100 = factories.flavor(cluster, "a100")
    made = factories.make_true(factories.tenancy(ada.teams[0], cluster))
    factories.allocation(ada, made, a100, gpus=2)
    factories.make_true(made)
    return made


def submit(tenancy: Tenancy, ada: User, key: str, asked: Submission = ASKED) -> Run:
    return actions.submit(tenancy.pk, asked, by=ada, key=key, now=timezone.now())


def refused(action: Callable[[], object], words: list[str]) -> None:
    try:
        action()
    except Conflict as error:
        words.append(str(error))


def test_the_same_submission_twice_at_once_is_one_run(
    tenancy: Tenancy, ada: User
) -> None:
    for number in range(ROUNDS):
        together(*[partial(submit, tenancy, ada, f"round-{number}")] * 2)
        assert Run.objects.count() == number + 1
        assert Event.objects.filter(kind="run.submitted").count() == number + 1


def test_one_key_for_two_submissions_at_once_is_one_run_and_a_refusal(
    tenancy: Tenancy, ada: User
) -> None:
    """As of a call and of a page: whoever comes second is told that the key has another run."""
    other = replace(ASKED, values={**ASKED.values, "gpus": 2})
    words: list[str] = []
    both = [partial(submit, tenancy, ada, "one", asked) for asked in (ASKED, other)]
    together(*[partial(refused, one, words) for one in both])
    assert Run.objects.count() == 1
    assert words == ["This key came with other values before. Use a new key."]


def test_submissions_at_once_never_go_beyond_the_runs_that_may_live(
    tenancy: Tenancy, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "MAX_LIVE_RUNS", 1)
    first = partial(submit, tenancy, ada, "one")
    with pytest.raises(Conflict, match="1 runs of your team wait or run here"):
        held_up(partial(submit, tenancy, ada, "two"), by=first)
    assert Run.objects.count() == 1


def test_who_is_taken_out_of_the_team_meanwhile_starts_nothing(
    tenancy: Tenancy, ada: User
) -> None:
    """Of what Ada may do was read when she sent it, and she is out of the team by the time that it is her turn."""
    assert tenancy.team_id in ada.team_ids

    def take_out() -> None:
        Tenancy.objects.locked().get(pk=tenancy.pk)
        Membership.objects.filter(user=ada).delete()

    with pytest.raises(NoRight, match="People of the team start its runs"):
        held_up(partial(submit, tenancy, ada, "one"), by=take_out)
    assert not Run.objects.exists()
