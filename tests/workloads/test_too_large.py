"""What is said of a run that is too large for a node, or for the whole cluster, before it is sent."""

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.workloads.runs import WHERE
from workloads.runs.planning.plan import Place, Problem, Submission, plan
from workloads.runs.planning.pools import Pool
from workloads.templates.library import BY_SLUG, Abilities

ONE, SEVERAL = "single-node", "pytorch"


def pool(gpus: int = 64, *, borrow: int = 0) -> Pool:
    """A100, 8 on each node."""
    assert WHERE.kind is not None
    return Pool(
        kind=replace(WHERE.kind, name="a100"),
        product="A100",
        gpus=gpus,
        borrow=borrow,
        per_node=8,
        usd_per_hour=Decimal(3),
    )


def problems(held: Pool, template: str = SEVERAL, **values: int) -> list[Problem]:
    """What keeps a run of a team from being sent that holds these."""
    place = Place(
        cluster="Training",
        where=WHERE,
        pools={"a100": held},
        priorities=("exploratory",),
        abilities=Abilities(frozenset(one.kind for one in BY_SLUG.values())),
    )
    given = {"image": "registry.example.com/train:1", "program": ("train.py",)}
    asked = Submission(
        template=template, title="Try", flavor="a100", values=given | values
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
    given = {"gpus": gpus} | ({"nodes": nodes} if nodes else {})
    [problem] = problems(pool(), template, **given)
    assert (problem.field, problem.code) == ("gpus", "larger_than_a_node")
    assert problem.text == said
