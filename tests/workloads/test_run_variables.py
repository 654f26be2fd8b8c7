"""Variables of a cluster are in the environment of every run there, unless the run sets them itself."""

from dataclasses import replace

import pytest

from accounts.models import User
from accounts.roles import Role
from fleet.clusters.actions import change_cluster
from tests import factories
from tests.calling import Caller
from tests.workloads.conftest import Watched
from tests.workloads.test_runs import ASKED
from web.refusals import BadInput
from workloads.runs import actions


@pytest.fixture
def priya() -> User:
    return factories.person("Priya Raman", Role.PLATFORM_LEAD)


def environment(watched: Watched, **own: str) -> dict[str, str]:
    """What the program of a run would find."""
    asked = replace(ASKED, variables=own)
    plan = actions.preview(watched.tenancy.pk, asked, by=watched.ada, key="one")
    assert not plan.problems
    [job] = [one for one in plan.manifests if one["kind"] == "Job"]
    [container] = job["spec"]["template"]["spec"]["containers"]
    return {one["name"]: one["value"] for one in container["env"]}


def test_every_run_has_them_and_may_say_otherwise(
    watched: Watched, priya: User
) -> None:
    said = {"NCCL_SOCKET_IFNAME": "eth0", "NCCL_DEBUG": "WARN"}
    answer = Caller(priya).patch(
        f"clusters/{watched.cluster.name}/", {"run_variables": said}
    )
    assert answer.status_code == 200, answer.content
    assert answer.json()["run_variables"] == said
    assert environment(watched).items() >= said.items()
    found = environment(watched, NCCL_DEBUG="INFO")
    assert (found["NCCL_DEBUG"], found["NCCL_SOCKET_IFNAME"]) == ("INFO", "eth0")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"1ST": "x"}, "cannot be set"),
        ({"QM_RUN": "x"}, "neither QM_"),
        ({"KUBERNETES_SERVICE_HOST": "evil"}, "KUBERNETES_"),
        ({"NCCL_DEBUG": 1}, "is text"),
        ({"NCCL_DEBUG": "a\nb"}, "one line"),
        ({"NCCL_DEBUG": "x" * 1001}, "at most 1000"),
        ({f"N{each}": "x" for each in range(51)}, "at most 50"),
        (["NCCL_DEBUG"], "by their names"),
    ],
)
def test_what_is_no_environment_is_refused_and_changes_nothing(
    watched: Watched, priya: User, wrong: object, said: str
) -> None:
    with pytest.raises(BadInput, match=said) as refused:
        change_cluster(watched.cluster.pk, values={"run_variables": wrong}, by=priya)
    assert refused.value.field == "run_variables"
    watched.cluster.refresh_from_db()
    assert watched.cluster.run_variables == {}
