"""Tokens of service accounts: the TokenRequest API."""

import json
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sandbox.kubernetes import protobuf, status
from sandbox.kubernetes.calls import Answer, Call, Target, json_answer
from sandbox.kubernetes.clock import timestamp
from sandbox.kubernetes.identity import Identity
from sandbox.kubernetes.kinds import builtin
from sandbox.kubernetes.status import bad_request

if TYPE_CHECKING:
    from sandbox.kubernetes.cluster import Cluster

ACCOUNTS = builtin("v1", "ServiceAccount")
SECONDS = 3600


def token(cluster: "Cluster", call: Call, at: Target) -> Answer:
    """A token by which callers are this account; 404 when there is none. It ends when the sandbox does."""
    if cluster.store.get(ACCOUNTS, at.namespace, at.name) is None:
        raise status.not_found(ACCOUNTS, at.name)
    spec = _spec(call)
    seconds = int(spec.get("expirationSeconds") or SECONDS)
    text = secrets.token_urlsafe(32)
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{at.namespace}")
    cluster.account_tokens[text] = Identity(
        f"system:serviceaccount:{at.namespace}:{at.name}", groups
    )
    ends = (datetime.now(UTC) + timedelta(seconds=seconds)).strftime(
        "%Y-%m-%dT%H:%M:%SZ"
    )
    body = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": at.name,
            "namespace": at.namespace,
            "creationTimestamp": timestamp(),
        },
        "spec": {
            "audiences": spec.get("audiences") or ["https://kubernetes.default.svc"],
            "expirationSeconds": seconds,
            "boundObjectRef": None,
        },
        "status": {"token": text, "expirationTimestamp": ends},
    }
    return json_answer(201, body)


def _spec(call: Call) -> Mapping[str, Any]:
    if call.content_type == protobuf.MEDIA_TYPE:
        return protobuf.read(call.body).get("spec") or {}
    try:
        return json.loads(call.body or b"{}").get("spec") or {}
    except (ValueError, AttributeError) as error:
        raise bad_request(f"json parse error: {error}") from error
