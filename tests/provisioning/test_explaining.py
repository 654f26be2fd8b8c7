"""Every class of failure is put into words: what it means, what to do, whether it is tried again."""

import json

import pytest
from dulwich.client import HTTPUnauthorized
from dulwich.errors import GitProtocolError, NotGitRepository

from connectors.errors import ConnectorError, TemporaryError
from connectors.git import Moved, refusal, said
from connectors.kubernetes_failures import failure
from provisioning.clusters import volcano
from provisioning.clusters.explaining import AGAIN, LATER, SILENT, UNKNOWN, explain
from provisioning.clusters.kueue import missing, too_old

# As the API server says them (Kubernetes 1.36, Kueue 0.19).
ANSWERS = {
    "another manager": (
        409,
        "Conflict",
        'Apply failed with 1 conflict: conflict with "portal": .data.a',
        "Another manager",
    ),
    "unknown field": (
        500,
        "",
        "failed to create typed patch object (…): .spec.cohort: field not declared in schema",
        "older or newer",
    ),
    "webhook away": (
        500,
        "InternalError",
        'Internal error occurred: failed calling webhook "mclusterqueue.kb.io": connection refused',
        "Kueue",
    ),
    "strict": (
        400,
        "BadRequest",
        'strict decoding error: unknown field "spec.x"',
        "older or newer",
    ),
    "stale": (
        409,
        "Conflict",
        "the object has been modified; please apply your changes to the latest version",
        "same moment",
    ),
    "role": (
        422,
        "Invalid",
        "RoleBinding.rbac.authorization.k8s.io is invalid: roleRef: cannot change roleRef",
        "role a binding",
    ),
    "escalation": (
        403,
        "Forbidden",
        "user is attempting to grant RBAC permissions not currently held",
        "may not give rights",
    ),
    "quota": (
        403,
        "Forbidden",
        "exceeded quota: team-quota, requested: pods=1",
        "no room",
    ),
    "refused": (
        403,
        "Forbidden",
        'admission webhook "vjob.kb.io" denied the request: no',
        "admission webhook",
    ),
    "terminating": (
        403,
        "Forbidden",
        "unable to create new content in namespace x because it is being terminated",
        "being deleted",
    ),
    "busy": (429, "TooManyRequests", "too many requests", "busy"),
    "not known": (401, "Unauthorized", "Unauthorized", "does not know the portal"),
    "not allowed": (
        403,
        "Forbidden",
        'resourcequotas is forbidden: User "qm" cannot patch',
        "may not do this",
    ),
    "no such kind": (
        404,
        "NotFound",
        "the server could not find the requested resource",
        "does not have this kind",
    ),
    "wrong value": (422, "Invalid", "spec.hard: Invalid value", "value in it"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_every_class_is_explained(name: str) -> None:
    status, reason, message, words = ANSWERS[name]
    error = failure(status, json.dumps({"reason": reason, "message": message}))
    said = explain(error.message, will_try_again=isinstance(error, TemporaryError))
    assert words in str(said), said
    assert str(said).endswith(AGAIN if isinstance(error, TemporaryError) else LATER)
    assert said.do


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("Namespace qm-x exists and is not ours; it was not touched.", "did not make"),
        ("The kubeconfig gone.yaml is not there.", "kubeconfig"),
        ("training does not answer.", "does not answer"),
        (
            "ClusterQueue x: .spec.cohortName is missing after writing.",
            "dropped a part",
        ),
        (
            "The portal failed (KeyError). Its operators were told.",
            "mistake of the portal",
        ),
        (
            "GET /api/v1/namespaces: ReadTimeoutError: Read timed out.",
            "does not answer",
        ),
        ("Namespace qm-x is being deleted; a.example/held holds it.", "being deleted"),
        ("cannot use the kubeconfig: Invalid kube-config file.", "kubeconfig"),
        (too_old("v0.14.1").message, "would not mean there"),
        (missing().message, "would not mean there"),
        (volcano.too_old("v1.8.2").message, "would not mean there"),
        (volcano.missing().message, "would not mean there"),
        (
            "Flux keeps LimitRange x in order, and would undo every change. Deliver to …",
            "undo each other",
        ),
        (
            "Argo CD keeps ClusterQueue x in order, and would undo every change. Take …",
            "undo each other",
        ),
    ],
)
def test_what_the_portal_finds_out_itself_is_explained_too(
    message: str, words: str
) -> None:
    assert words in str(explain(message, will_try_again=False))


SHOWN = "github.com/platform/fleet.git"
# As the host's programs and dulwich say them, and as the portal puts them.
OF_GIT: dict[str, tuple[ConnectorError, str]] = {
    "bad credentials": (
        said(SHOWN, HTTPUnauthorized("Basic", "https://x")),
        "renews the credentials",
    ),
    "no repository": (said(SHOWN, NotGitRepository()), "no such repository"),
    "may not read": (
        said(SHOWN, GitProtocolError("unexpected http resp 403 for https://x")),
        "gives its account",
    ),
    "a folder without rights": (
        said("/srv/fleet.git", PermissionError()),
        "gives its account",
    ),
    "elsewhere": (
        said(SHOWN, GitProtocolError("unexpected http resp 302 for https://x")),
        "corrects the address",
    ),
    "host away": (said(SHOWN, TimeoutError()), "Git host does not answer as"),
    "host failing": (
        said(SHOWN, GitProtocolError("unexpected http resp 503 for https://x")),
        "Git host does not answer",
    ),
    "overtaken": (Moved(SHOWN), "at the same moment"),
    "protected branch": (
        refusal(SHOWN, "protected branch hook declined"),
        "branch is protected",
    ),
    "rules": (
        refusal(SHOWN, "push declined due to repository rule violations"),
        "branch is protected",
    ),
    "hook": (refusal(SHOWN, "pre-receive hook declined"), "takes no such commit"),
}


@pytest.mark.parametrize("name", OF_GIT)
def test_every_refusal_of_a_git_host_is_explained_as_one(name: str) -> None:
    error, words = OF_GIT[name]
    told = explain(error.message, will_try_again=isinstance(error, TemporaryError))
    assert words in str(told), (error.message, str(told))
    assert str(told).endswith(AGAIN if isinstance(error, TemporaryError) else LATER)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("The Git credentials robot are not there.", "credentials for the repository"),
        (
            "The credentials hold no private key without a passphrase.",
            "credentials for the repository",
        ),
        (
            "The credentials hold no token, which is one line of plain characters.",
            "credentials for the repository",
        ),
        (
            "git.example and the portal do not accept each other by SSH: No …",
            "renews the credentials",
        ),
        ("The key of git.example is not known. Put its line …", ".known_hosts"),
        (
            "git.example is not on the internet and not among the hosts allowed.",
            "corrects the address",
        ),
        ("git.example cannot be found.", "Git host does not answer as"),
        (
            "There is no branch main that a pull request could go to.",
            "no such pull request",
        ),
        (
            "Pull request 12 was closed without being merged. Open …",
            "decided against it",
        ),
        (
            "It is out of the repository (a403c12). Flux and Argo CD keep the namespace qm-x …",
            "delete no namespace",
        ),
        (
            "clusters/x/kustomization.yaml exists in the repository and is not ours; it was not touched.",
            "did not",
        ),
    ],
)
def test_what_the_portal_finds_out_about_a_repository_is_explained_too(
    message: str, words: str
) -> None:
    assert words in str(explain(message, will_try_again=False))


@pytest.mark.parametrize(
    "mark", ["4013ab", "a403c1", "404404", "422400", "409410", "429429"]
)
def test_the_mark_in_a_name_is_no_status(mark: str) -> None:
    refused = f"GET /api/v1/namespaces/qm-vision-{mark}: NewConnectionError: Connection refused"
    assert "does not answer" in str(explain(refused, will_try_again=True))
    assert (
        explain(f"PersistentVolumeClaim qm-{mark} is odd.", will_try_again=False)
        is UNKNOWN
    )


@pytest.mark.parametrize(
    "name", ["immutable", "kubeconfig", "flux-keeps", "already-exists", "timed-out"]
)
def test_the_name_of_a_team_is_no_reason(name: str) -> None:
    error = failure(
        403,
        json.dumps(
            {
                "reason": "Forbidden",
                "message": f'namespaces "qm-{name}-4013ab" is forbidden',
            }
        ),
    )
    assert "may not do this" in str(explain(error.message, will_try_again=False))


def test_what_nobody_has_put_into_words_says_so() -> None:
    assert explain("418 Teapot", will_try_again=False) is UNKNOWN
    assert explain("503 ServiceUnavailable", will_try_again=True) is SILENT
