"""What is said of a run that is too large for a node, or for the whole cluster, before it is sent."""

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.workloads.runs import WHERE
from workloads.runs.planning.plan import Place, Problem, Submission, plan
from workloads.runs.planning.pools import Pool
from workloads.templates.library import BY_SLUG, Abilities

ONE, SEVERAL = "single-node", "pytorch"


def pool(gpus: int = 64, *, borrow: int = 0, there: int | None = None) -> Pool:
    """A100, 8 on each node."""
    assert WHERE.kind is not None
    return Pool(
        kind=replace(WHERE.kind, name="a100"),
        product="A100",
        gpus=gpus,
        borrow=borrow,
        per_node=8,
        usd_per_hour=Decimal(3),
        on_cluster=there,
    )


def problems(
    held: Pool,
    template: str = SEVERAL,
    *,
    gpus: int,
    nodes: int = 0,
    is_held: bool = True,
) -> list[Problem]:
    """What keeps a run of a team from being sent that holds these, or is offered them."""
    place = Place(
        cluster="Training",
        where=WHERE,
        pools={"a100": held} if is_held else {},
        offered={"a100": held},
        priorities=("exploratory",),
        abilities=Abilities(frozenset(one.kind for one in BY_SLUG.values())),
    )
    given: dict[str, object] = {
        "image": "registry.example.com/train:1",
        "program": ("train.py",),
    }
    values = {"gpus": gpus} | ({"nodes": nodes} if nodes else {})
    asked = Submission(
        template=template, title="Try", flavor="a100", values={**given, **values}
    )
    return [*plan(asked, place, key="1").problems]


@pytest.mark.parametrize(
    ("template", "nodes", "gpus", "said"),
    [
        pytest.param(
            SEVERAL,
            2,
            16,
            "A node has 8 × A100: take at most 8 on each. 32 in all are 8 on each of 4 nodes.",
            id="four full nodes",
        ),
        pytest.param(
            SEVERAL,
            3,
            12,
            "A node has 8 × A100: take at most 8 on each. 36 in all are 6 on each of 6 nodes.",
            id="pods are of one size",
        ),
        pytest.param(
            SEVERAL,
            256,
            16,
            "A node has 8 × A100: take at most 8 on each.",
            id="more nodes than the template takes",
        ),
        pytest.param(
            ONE,
            0,
            16,
            "A node has 8 × A100. For more, choose a template of several nodes.",
            id="a template of one node",
        ),
    ],
)
def test_a_run_whose_nodes_take_too_many_is_told_how_many_nodes_would_do(
    template: str, nodes: int, gpus: int, said: str
) -> None:
    """A template of several nodes is not what it lacks where it is one."""
    [problem] = problems(pool(), template, gpus=gpus, nodes=nodes)
    assert (problem.field, problem.code) == ("gpus", "larger_than_a_node")
    assert problem.text == said


@pytest.mark.parametrize(
    ("there", "borrow", "nodes", "code", "lacks"),
    [
        pytest.param(24, 0, 4, "larger_than_the_cluster", 0, id="more than there are"),
        pytest.param(24, 0, 3, "more_than_held", 16, id="all that there are"),
        pytest.param(None, 0, 4, "more_than_held", 24, id="nobody counted them"),
        # Nodes have gone since the team was given its own.
        pytest.param(4, 8, 3, "larger_than_the_cluster", 0, id="nodes have gone"),
    ],
)
def test_nobody_is_sent_to_ask_for_more_than_the_cluster_has(
    there: int | None, borrow: int, nodes: int, code: str, lacks: int
) -> None:
    """Where it can never fit, that is said, and there is nothing to ask for."""
    held = pool(8, borrow=borrow, there=there)
    [problem] = problems(held, gpus=8, nodes=nodes)
    assert (problem.field, problem.code, problem.lacks) == ("gpus", code, lacks)
    if code == "larger_than_the_cluster":
        assert problem.text == (
            f"It asks for {nodes * 8} × A100; Training has {there} in all. It can never fit there."
        )


@pytest.mark.parametrize(
    ("nodes", "code", "lacks"),
    [(3, "not_held", 24), (4, "larger_than_the_cluster", 0)],
)
def test_of_a_kind_that_the_team_has_none_of_it_asks_for_no_more_than_there_are(
    nodes: int, code: str, lacks: int
) -> None:
    """As of one that it holds."""
    [problem] = problems(pool(0, there=24), is_held=False, gpus=8, nodes=nodes)
    assert (problem.field, problem.code, problem.lacks) == ("flavor", code, lacks)


def test_no_nodes_are_named_that_the_cluster_does_not_have() -> None:
    """What follows would be refused, too."""
    [problem] = problems(pool(8, there=24), gpus=16, nodes=2)
    assert problem.text == "A node has 8 × A100: take at most 8 on each."


@pytest.mark.parametrize(
    ("held", "there", "gpus", "code", "advice"),
    [
        pytest.param(
            2, 24, 1, "more_than_held", "ask for 2 more, or set At once to 2.", id="two"
        ),
        pytest.param(
            5, 24, 2, "more_than_held", "ask for 3 more, or set At once to 2.", id="odd"
        ),
        pytest.param(1, 24, 2, "more_than_held", "ask for 7 more.", id="not even one"),
        pytest.param(
            3,
            3,
            1,
            "larger_than_the_cluster",
            "Set At once to 3, and it fits.",
            id="more at once than there are",
        ),
    ],
)
def test_a_sweep_is_told_how_many_of_its_trials_fit_at_once(
    held: int, there: int, gpus: int, code: str, advice: str
) -> None:
    """Four of its ten run at once unless told otherwise; it needs no more GPUs than one of them takes."""
    [problem] = problems(pool(held, there=there), "sweep", gpus=gpus)
    assert problem.code == code
    assert problem.text.endswith(advice)
