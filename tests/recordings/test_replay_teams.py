"""Members' jobs, and a priority across teams, as a real cluster answered where the portal had been at work."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
import yaml

from connectors.kubernetes import path, ref_of
from provisioning.desired.manifests import fleet_objects, tenancy_objects
from provisioning.desired.spec import FlavorQuota, TenancySpec
from sandbox.kubernetes import Cluster, Identity, NodeSpec
from tests.provisioning.kubernetes import DEPLOY
from tests.provisioning.specs import sample
from tests.recordings.replaying import steps_of
from tests.recordings.replaying_jobs import JobPlayer

ADA, MALLORY = (
    "00000000-0000-4000-9000-000000000009",
    "00000000-0000-4000-9000-000000000003",
)
CALLERS = {
    "admin": Identity("admin", ("system:masters",)),
    "ada": Identity("ada@example.com", (ADA,)),
    "mallory": Identity("mallory@example.com", (MALLORY,)),
}
A100 = FlavorQuota(name="a100-80gb", gpus=10)
CLIMATE = sample(
    tenancy=1,
    team="climate",
    project="forecast",
    namespace="qm-climate-forecast-40bda2",
    entra_group=ADA,
    flavors=(A100,),
)
FLEET = sample(
    tenancy=2,
    team="fleet-3",
    project="main",
    namespace="qm-fleet-3-main-fe7161",
    entra_group=MALLORY,
    flavors=(replace(A100, gpus=2),),
)
APPLY = "application/apply-patch+yaml"
Hook = Callable[[JobPlayer], None]

NOT_ALIKE: Mapping[str, Mapping[int, str]] = {
    "22-member-jobs": {
        4: "the log of the recorded node agent was another one, and the pod of another name",
        8: "Kueue's gate for pods that belong to no Job is not put on: Jobs are the only workload",
    },
    "24-priority-across-teams": {
        1: "no pod is evicted for another's priority; no PriorityClass of the portal preempts since this was recorded",
    },
}


def player_of(*specs: TenancySpec) -> JobPlayer:
    """A cluster with three nodes, and these teams as the portal puts them there."""
    nodes = [
        NodeSpec(f"a100-{n}", gpus=8, labels={"accelerator": "a100"}) for n in range(3)
    ]
    player = JobPlayer(
        Cluster("recorded", nodes=nodes, tokens=CALLERS), agent="Python-urllib/3.12"
    )
    [role] = yaml.safe_load_all((DEPLOY / "team-role.yaml").read_text())
    player.admin("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
    flavors = [(A100.name, {"accelerator": "a100"}, list[dict[str, str]]())]
    shared = fleet_objects(cohort=CLIMATE.cohort, flavors=flavors)
    for manifest in [
        *shared,
        *(one for spec in specs for one in tenancy_objects(spec)),
    ]:
        metadata = manifest["metadata"]
        where = path(ref_of(manifest), metadata.get("namespace"), metadata["name"])
        player.admin(
            "PATCH", f"{where}?fieldManager=quartermaster&force=true", manifest, APPLY
        )
    return player


def starts(player: JobPlayer) -> None:
    player.pass_time(0.1)


HOOKS: Mapping[str, Mapping[str, Hook]] = {
    "22-member-jobs": {"member-reads-log": starts},
    "24-priority-across-teams": {},
}


@pytest.mark.parametrize("name", list(NOT_ALIKE))
def test_what_teams_did_is_answered_as_recorded(name: str) -> None:
    player = player_of(CLIMATE, FLEET)
    hooks, listed = dict(HOOKS[name]), NOT_ALIKE[name]
    wrong: list[str] = []
    for number, step in enumerate(steps_of(name)):
        if hook := hooks.pop(step["name"], None):
            hook(player)
        lines = player.play_job(step)
        title = f"{name}[{number}] {step['name']}"
        if lines and number not in listed:
            wrong.append("\n  ".join([title, *lines[:6]]))
        if not lines and number in listed:
            wrong.append(f"{title} matches now: take it off the list")
    assert not wrong, "\n".join(wrong)
    assert not hooks, f"hooks that never ran: {sorted(hooks)}"
