"""What members of a team were answered on a real cluster, with the shipped role bound as the portal binds it."""

import yaml

from provisioning.desired.manifests import tenancy_objects
from sandbox.kubernetes import Cluster, Identity
from tests.provisioning.kubernetes import DEPLOY
from tests.provisioning.specs import sample
from tests.recordings.replaying import Player, steps_of

SPACE, GROUP = "qm-climate-forecast-40bda2", "00000000-0000-4000-9000-000000000009"
CALLERS = {
    "admin": Identity("admin", ("system:masters",)),
    "ada": Identity("ada@example.com", (GROUP,)),
    "mallory": Identity(
        "mallory@example.com", ("00000000-0000-4000-9000-000000000003",)
    ),
}


def test_what_members_and_strangers_were_refused_they_are_refused_in_the_same_words() -> (
    None
):
    player = Player(Cluster("recorded", tokens=CALLERS))
    [role] = yaml.safe_load_all((DEPLOY / "team-role.yaml").read_text())
    player.admin("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
    spec = sample(
        team="climate", project="forecast", namespace=SPACE, entra_group=GROUP
    )
    named = {
        one["kind"]: one
        for one in tenancy_objects(spec)
        if one["kind"] in ("Namespace", "RoleBinding")
    }
    player.admin("POST", "/api/v1/namespaces", named["Namespace"])
    where = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{SPACE}/rolebindings"
    player.admin("POST", where, named["RoleBinding"])
    unlike = {
        step["name"]: lines
        for step in steps_of("23-member-rights")
        if (lines := player.play(step))
    }
    assert unlike == {}
