"""Paths, and what answers mean; the calls themselves are in tests/contract."""

import json

import pytest
import yaml
from kubernetes.client import Configuration

from connectors.errors import PermanentError, TemporaryError
from connectors.kubernetes import Cluster, path, rendered
from connectors.kubernetes_failures import failure


def status(code: int, reason: str, message: str) -> str:
    return json.dumps(
        {"kind": "Status", "code": code, "reason": reason, "message": message}
    )


@pytest.mark.parametrize(
    ("code", "reason", "message"),
    [
        (429, "TooManyRequests", "later"),
        (503, "ServiceUnavailable", "starting"),
        (504, "Timeout", "Too large resource version"),
        (
            500,
            "InternalError",
            'Internal error occurred: failed calling webhook "mjob.kb.io": connection refused',
        ),
        (500, "", "something else"),
        (
            403,
            "Forbidden",
            "unable to create new content in namespace a because it is being terminated",
        ),
        (
            409,
            "AlreadyExists",
            'object is being deleted: namespaces "a" already exists',
        ),
    ],
)
def test_it_is_worth_another_try(code: int, reason: str, message: str) -> None:
    assert isinstance(failure(code, status(code, reason, message)), TemporaryError)


@pytest.mark.parametrize(
    ("code", "reason", "message", "meaning"),
    [
        (
            500,
            "",
            "failed to create typed patch object (a/b): .spec.x: field not declared in schema",
            "invalid",
        ),
        (500, "", "failed to convert new object (a/b)", "invalid"),
        (401, "Unauthorized", "Unauthorized", "unauthorized"),
        (403, "Forbidden", "exceeded quota: q", "quota"),
        (
            403,
            "Forbidden",
            "is attempting to grant RBAC permissions not currently held",
            "escalation",
        ),
        (
            403,
            "Forbidden",
            'admission webhook "vjob.kb.io" denied the request: no',
            "denied",
        ),
        (403, "Forbidden", "User cannot list", "forbidden"),
        (404, "NotFound", "not found", "not_found"),
        (409, "Conflict", "Apply failed with 1 conflict", "conflict"),
        (409, "AlreadyExists", "already exists", "already_exists"),
        (410, "Expired", "too old", "expired"),
        (422, "Invalid", "is invalid", "invalid"),
        (415, "UnsupportedMediaType", "no", "bad_request"),
    ],
)
def test_trying_again_changes_nothing(
    code: int, reason: str, message: str, meaning: str
) -> None:
    error = failure(code, status(code, reason, message))
    assert isinstance(error, PermanentError)
    assert error.code == meaning


def test_the_wait_asked_for_is_kept() -> None:
    error = failure(429, "Too many requests", "3")
    assert isinstance(error, TemporaryError)
    assert error.retry_after == 3


def test_a_long_answer_is_cut() -> None:
    assert len(failure(500, "x" * 5000).message) <= 501


def test_paths_say_group_namespace_and_name() -> None:
    assert path(("v1", "Namespace"), None, "a") == "/api/v1/namespaces/a"
    assert path(("batch/v1", "Job"), "a") == "/apis/batch/v1/namespaces/a/jobs"
    assert path(("v1", "Pod")) == "/api/v1/pods"


def test_a_name_cannot_climb_out_of_its_path() -> None:
    assert path(("v1", "Namespace"), None, "../x") == "/api/v1/namespaces/..%2Fx"


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(PermanentError) as caught:
        path(("v1", "Teapot"))
    assert caught.value.code == "unknown_kind"


def test_a_manifest_is_rendered_alike_however_its_keys_came() -> None:
    once = rendered(
        {
            "kind": "A",
            "spec": {"b": "1e3", "a": ["no", "\u2028", "é", "\U0001f600", "\x85"]},
        }
    )
    again = rendered(
        {
            "spec": {"a": ["no", "\u2028", "é", "\U0001f600", "\x85"], "b": "1e3"},
            "kind": "A",
        }
    )
    assert once == again
    assert yaml.safe_load(once) == json.loads(once)
    assert yaml.safe_load(once)["spec"] == {
        "a": ["no", "\u2028", "é", "\U0001f600", "\x85"],
        "b": "1e3",
    }


def test_all_that_are_patient_share_the_connections_of_one_cluster() -> None:
    cluster = Cluster(Configuration(host="https://127.0.0.1:1"))
    first, second = cluster.patient(seconds=1), cluster.patient(seconds=1)
    assert first._api() == second._api() == cluster._api()
