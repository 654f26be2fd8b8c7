"""Clusters and their people make it hard: everything still comes true, or says why not."""

import json
import os
import time
from collections.abc import Iterator
from random import Random

import pytest
import yaml
from django.conf import settings
from django.db import OperationalError

from audit.models import Event
from checks.invariants import AZURE, check
from connectors import kubernetes as connector
from connectors.patience import MOST_TRIES
from provisioning import delivery
from reconciling import failpoints
from tests.faults.proxy import Proxy, proxied
from tests.provisioning.conftest import Place, kubernetes, kubernetes_server, place
from tests.provisioning.kubernetes import ADMIN, DEPLOY, PORTAL
from tests.recordings.calling import call

__all__ = ["kubernetes", "kubernetes_server", "place"]
QUOTA, NAMESPACE = ("v1", "ResourceQuota"), ("v1", "Namespace")
NO_SUCH_KIND = "404 page not found\n"


@pytest.fixture
def proxy(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """The fault proxy between the portal and the cluster of `place`."""
    monkeypatch.setattr(connector, "TIMEOUT", (1.0, 0.2))
    with proxied(place.kubernetes.port) as running:
        rewrite(place, f":{place.kubernetes.port}", f":{running.port}")
        yield running


def rewrite(place: Place, before: str, after: str) -> None:
    """Change the kubeconfig file as an administrator would."""
    path = settings.ENV.kubeconfig_dir / place.cluster.kubeconfig
    path.write_text(path.read_text().replace(before, after))
    later = time.time_ns() + 10**9
    os.utime(path, ns=(later, later))


def come_true(place: Place, *, most: int) -> int:
    """Look again and again, at most so often; returns how often it took."""
    for turn in range(1, most + 1):
        place.reconcile()
        if place.row.is_settled:
            return turn
        place.later(minutes=6)
    raise AssertionError(place.row.ready)


def is_right(place: Place) -> bool:
    """Whether every promise holds, and another pass writes nothing."""
    report = check(now=place.time)
    said = [str(f) for f in report.findings if f.promise != "I7"] + [
        n for n in report.notes if n != AZURE
    ]
    assert said == []
    return place.reconcile() == 0


def test_a_server_that_fails_now_and_then_is_written_to_in_a_bounded_number_of_tries(
    place: Place, proxy: Proxy
) -> None:
    random = Random(20)
    fates = [
        random.choice([500, 503, 504]) if random.random() < 0.2 else 0
        for _ in range(400)
    ]
    for status in fates:
        proxy.fail("status", status=status) if status else proxy.fail("pass")
    turns = 0
    for _ in range(5):
        turns += come_true(place, most=3)
        place.later(minutes=6)
    assert turns < 8
    assert sum(map(bool, fates[: proxy.exchanges])) > 8
    assert place.kubernetes.writes == len(place.row.objects_seen)
    proxy.faults.clear()
    assert is_right(place)


def test_a_server_that_always_fails_is_asked_four_times_and_left_alone_until_the_next_pass(
    place: Place, proxy: Proxy
) -> None:
    proxy.fail("status", status=503, times=100)
    began = time.monotonic()
    assert place.reconcile() == 0
    assert time.monotonic() - began < delivery.PATIENCE
    assert proxy.exchanges == MOST_TRIES
    assert place.row.ready["reason"] == "WillTryAgain"
    proxy.faults.clear()
    come_true(place, most=1)
    assert is_right(place)


def test_a_row_that_somebody_holds_is_no_refusal_and_the_pass_is_made_again_soon(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held() -> None:
        raise OperationalError("canceling statement due to lock timeout")

    monkeypatch.setenv("FAILPOINT", "provision.write:always")
    monkeypatch.setattr(failpoints, "strike", held)
    with pytest.raises(OperationalError):
        place.reconcile()
    assert (place.row.requeue_at - place.time).total_seconds() == 5
    monkeypatch.delenv("FAILPOINT")
    place.later(seconds=6)
    come_true(place, most=1)
    assert is_right(place)


def test_a_server_that_says_when_to_come_back_is_left_alone_until_then(
    place: Place, proxy: Proxy
) -> None:
    proxy.fail("status", status=429, headers="Retry-After: 17\r\n")
    place.reconcile()
    assert (place.row.requeue_at - place.time).total_seconds() == 17
    assert proxy.exchanges == 1
    come_true(place, most=1)
    assert is_right(place)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["reset", "blackhole", "drip"])
def test_an_answer_that_is_lost_slow_or_never_comes_costs_a_try_and_nothing_twice(
    place: Place, proxy: Proxy, mode: str
) -> None:
    proxy.fail(mode, after=7, seconds=0.001)
    come_true(place, most=2)
    assert place.kubernetes.writes == len(place.row.objects_seen)
    assert is_right(place)


def test_when_every_third_answer_is_lost_one_pass_does_it_and_nothing_is_written_twice(
    place: Place, proxy: Proxy
) -> None:
    for _ in range(100):
        proxy.fail("reset", after=2)
    assert come_true(place, most=1) == 1
    assert place.kubernetes.writes <= 2 * len(place.row.objects_seen)
    proxy.faults.clear()
    assert is_right(place)


def test_a_write_whose_answer_was_lost_is_sent_again_and_the_object_is_written_once(
    place: Place, proxy: Proxy
) -> None:
    place.reconcile()
    where = (QUOTA, "team-quota", place.tenancy.namespace)
    place.kubernetes.patch(*where, {"spec": {"hard": {"pods": "7"}}})
    before = place.kubernetes.get(*where)
    place.later(seconds=61)
    reads = proxy.exchanges
    place.reconcile()
    plain = proxy.exchanges - reads
    place.kubernetes.patch(*where, {"spec": {"hard": {"pods": "7"}}})
    place.later(seconds=61)
    # The last exchange of such a pass is the write.
    proxy.fail("reset", after=plain - 1)
    place.reconcile()
    after = place.kubernetes.get(*where)
    assert before is not None
    assert after is not None
    assert (place.row.is_settled, after["spec"]["hard"]["pods"]) == (True, "50")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_when_a_third_of_all_answers_is_lost_by_chance_few_passes_do_it(
    place: Place, proxy: Proxy, seed: int
) -> None:
    chance = Random(seed)
    for _ in range(300):
        proxy.fail("reset" if chance.random() < 0.3 else "pass")
    assert come_true(place, most=3) <= 3
    proxy.faults.clear()
    assert is_right(place)


def test_a_field_that_a_person_took_over_is_taken_back_and_what_is_theirs_stays(
    place: Place,
) -> None:
    place.reconcile()
    human = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {
            "name": "team-quota",
            "annotations": {"example.com/why": "we need more"},
        },
        "spec": {"hard": {"requests.nvidia.com/gpu": "64"}},
    }
    where = f"/api/v1/namespaces/{place.tenancy.namespace}/resourcequotas/team-quota"
    headers = {
        "authorization": f"Bearer {ADMIN}",
        "content-type": "application/apply-patch+yaml",
    }
    query = {"fieldManager": "ada", "force": "true"}
    served, body = place.kubernetes, json.dumps(human).encode()
    answer = call(
        served.cluster.app, "PATCH", where, query, headers, body, loop=served.loop
    )
    assert answer.status == 200, answer
    place.later(seconds=61)
    place.reconcile()
    quota = place.kubernetes.get(QUOTA, "team-quota", place.tenancy.namespace)
    assert quota is not None
    assert quota["spec"]["hard"]["requests.nvidia.com/gpu"] == "0"
    assert quota["metadata"]["annotations"]["example.com/why"] == "we need more"
    assert Event.objects.filter(kind="tenancy.drift_repaired").exists()
    assert is_right(place)


@pytest.mark.slow
def test_a_namespace_that_somebody_deletes_is_made_again_with_everything_in_it(
    place: Place,
) -> None:
    place.reconcile()
    place.kubernetes.delete(NAMESPACE, place.tenancy.namespace)
    place.later(seconds=61)
    place.reconcile()
    assert "is being deleted" in place.row.ready["message"]
    place.kubernetes.terminate()
    place.later(seconds=61)
    come_true(place, most=4)
    assert is_right(place)


def test_a_kind_that_the_cluster_does_not_know_is_said_and_comes_true_once_it_does(
    place: Place,
) -> None:
    place.kubernetes.fail("kueue.x-k8s.io", status=404, body=NO_SUCH_KIND)
    place.reconcile()
    assert (place.row.ready["reason"], place.row.is_true) == ("Refused", False)
    place.kubernetes.cluster.faults.clear()
    come_true(place, most=1)
    assert is_right(place)


def test_a_token_that_was_changed_is_read_again_without_a_restart(place: Place) -> None:
    rewrite(place, f"token: {PORTAL}", "token: expired")
    place.reconcile()
    assert (place.row.ready["reason"], "401" in place.row.ready["message"]) == (
        "Refused",
        True,
    )
    rewrite(place, "token: expired", f"token: {PORTAL}")
    come_true(place, most=1)
    assert is_right(place)


def test_rights_that_were_taken_away_are_said_and_given_back(place: Place) -> None:
    where = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/quartermaster-provisioner"
    place.kubernetes.write("DELETE", where)
    place.reconcile()
    assert (place.row.ready["reason"], "403" in place.row.ready["message"]) == (
        "Refused",
        True,
    )
    for file in DEPLOY.glob("*.yaml"):
        for manifest in yaml.safe_load_all(file.read_text()):
            if manifest["kind"] == "ClusterRoleBinding":
                place.kubernetes.create(manifest)
    come_true(place, most=1)
    assert is_right(place)
