"""Every class of failure is put into words: what it means, what to do, whether it is tried again."""

import json

import pytest

from connectors.errors import TemporaryError
from connectors.kubernetes_failures import failure
from provisioning.explaining import AGAIN, LATER, SILENT, UNKNOWN, explain

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
    "strict": (400, "BadRequest", 'strict decoding error: unknown field "spec.x"', "older or newer"),
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
    "quota": (403, "Forbidden", "exceeded quota: team-quota, requested: pods=1", "no room"),
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
        ("ClusterQueue x: .spec.cohortName is missing after writing.", "dropped a part"),
        ("The portal failed (KeyError). Its operators were told.", "mistake of the portal"),
        ("GET /api/v1/namespaces: ReadTimeoutError: Read timed out.", "does not answer"),
    ],
)  # fmt: skip
def test_what_the_portal_finds_out_itself_is_explained_too(message: str, words: str) -> None:
    assert words in str(explain(message, will_try_again=False))


def test_what_nobody_has_put_into_words_says_so() -> None:
    assert explain("418 Teapot", will_try_again=False) is UNKNOWN
    assert explain("503 ServiceUnavailable", will_try_again=True) is SILENT
