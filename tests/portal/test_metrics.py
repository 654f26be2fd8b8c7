"""What a scrape of /metrics tells, from the rows that it is computed from."""

import time
from datetime import timedelta
from math import inf
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.db import OperationalError, ProgrammingError, connection
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from accounts.models import DirectoryBrake
from allocations.models import Brake
from approvals.models import Request, Step
from audit.models import Head
from fleet.models import Cluster, Flavor
from notices.models import Delivery
from portal.metrics.exposition import text_of
from portal.metrics.families import Family
from portal.metrics.gathering import GROUPS
from portal.metrics.teams import parked_rows
from portal.models import note_pulse
from portal.tasks import pulse
from provisioning.models import Tenancy
from reconciling.models import Leased
from tests import factories
from tests.portal.scraping import (
    ago,
    copy,
    fleet,
    is_about,
    notice_for,
    scrape,
    statements,
    token,
    told,
    value,
)
from tests.scene import Scene, scene
from workloads.models import ClusterObject, Feed, Run
from workloads.watching.kept import KINDS

# The clusters, one for each of the eleven groups, one more for feeds, for the use of GPUs and for the second brake, and
# one where no watcher has been there yet.
MAX_STATEMENTS = 16

__all__ = ["token"]

pytestmark = pytest.mark.usefixtures("token")


@pytest.fixture
def vision(token: str) -> Scene:
    """A team with a tenancy on the cluster "training", which has 24 A100."""
    return scene()


def test_workers_and_watcher() -> None:
    assert value("workers_last_pulse_seconds") == inf
    note_pulse(now=ago(minutes=3))
    assert is_about(value("workers_last_pulse_seconds"), 180)
    pulse()
    assert value("workers_last_pulse_seconds") < 60
    assert value("watcher_missing_seconds") == 0
    feed = Feed.objects.create(cluster=factories.cluster(), kind="Job")
    assert value("watcher_missing_seconds") == inf
    Feed.objects.filter(pk=feed.pk).update(holder="a", lease_until=ago(minutes=3))
    assert is_about(value("watcher_missing_seconds"), 180)


def test_the_audit_log(vision: Scene) -> None:
    before = value("audit_events_total")
    assert before == Head.objects.get().seq > 0
    vision.ask(4)
    assert value("audit_events_total") > before


def test_clusters() -> None:
    factories.cluster("never", reachable=None, last_contact_at=None)
    broken = [{"part": "Kueue", "state": "bad", "words": "Down."}]
    factories.cluster("away", reachable=False, last_contact_at=ago(minutes=9))
    factories.cluster("there", parts=broken)
    factories.cluster(
        "maintained",
        maintenance_starts_at=ago(hours=1),
        maintenance_ends_at=timezone.now() + timedelta(hours=1),
    )
    found = told()
    assert ("quartermaster_cluster_reachable", "never") not in found
    assert found["quartermaster_cluster_reachable", "away"] == 0
    assert found["quartermaster_cluster_reachable", "there"] == 1
    assert found["quartermaster_cluster_last_contact_seconds", "never"] == inf
    assert is_about(found["quartermaster_cluster_last_contact_seconds", "away"], 540)
    assert found["quartermaster_cluster_broken_parts", "there"] == 1
    assert found["quartermaster_cluster_broken_parts", "away"] == 0
    assert found["quartermaster_cluster_in_maintenance", "maintained"] == 1
    assert found["quartermaster_cluster_in_maintenance", "there"] == 0


def test_a_cluster_that_was_written_off_is_told_of_no_more() -> None:
    factories.cluster("gone", enabled=False, written_off_at=timezone.now())
    assert not [key for key in told() if "gone" in key]


def test_copies_of_what_runs() -> None:
    cluster = factories.cluster("training", kubeconfig="training.yaml")
    factories.cluster("by-git", delivery="git")
    name = "cluster_copy_silent_seconds"
    assert value(name, "training") == inf
    assert (f"quartermaster_{name}", "by-git") not in told()
    now = timezone.now()
    Feed.objects.bulk_create(
        Feed(cluster=cluster, kind=kind, listed_at=now, heard_at=now) for kind in KINDS
    )
    assert value(name, "training") == 0
    Feed.objects.filter(kind="Pod").update(silent_since=ago(minutes=5), message="403")
    assert is_about(value(name, "training"), 300)


@pytest.mark.slow
def test_tenancies_that_are_not_true(vision: Scene) -> None:
    names = "tenancies_not_true", "tenancies_oldest_not_true_seconds"

    def found() -> list[float]:
        return [value(name, "training") for name in names]

    factories.make_true(vision.tenancy, at=ago(days=3))
    assert found() == [0, 0]
    rows = Tenancy.objects.filter(pk=vision.tenancy.pk)
    # Something else is wanted of what was true.
    rows.update(generation=vision.tenancy.generation + 1, changed_at=ago(minutes=2))
    number, oldest = found()
    assert number == 1
    assert is_about(oldest, 120)
    # It has not been true for longer than that.
    factories.make_true(
        vision.tenancy, failed="ResourceQuota", message="no", at=ago(hours=1)
    )
    number, oldest = found()
    assert number == 1
    assert is_about(oldest, 3600)
    factories.leave(vision.tenancy, to="gone", at=timezone.now())
    assert found() == [0, 0]


def test_what_is_parked_and_not_over(vision: Scene) -> None:
    assert value("parked_rows", "tenancy") == value("parked_rows", "run") == 0
    Tenancy.objects.update(is_true=False, parked_at=timezone.now())
    runs = [factories.run(vision.tenancy, vision.ada) for _ in range(3)]
    Run.objects.update(parked_at=timezone.now())
    Run.objects.filter(pk=runs[0].pk).update(state="gone", ended_at=timezone.now())
    factories.reservation(vision.team, parked_at=timezone.now())
    assert value("parked_rows", "tenancy") == 1
    assert value("parked_rows", "run") == 2
    assert value("parked_rows", "reservation") == 1
    assert value("parked_rows", "quota_increase") == 0


def test_everything_that_can_be_parked_is_told() -> None:
    leased = {model for model in models() if issubclass(model, Leased)}
    assert {rows.model for rows in parked_rows().values()} == {*leased, Delivery}


def test_requests_that_wait(vision: Scene) -> None:
    asked = factories.request(
        vision.ada, vision.tenancy, vision.flavor, gpus=4, now=ago(hours=2)
    )
    found = told()
    assert asked.state == "waiting"
    assert found["quartermaster_requests_waiting", "approver"] == 1
    assert found["quartermaster_requests_waiting", "requester"] == 0
    assert is_about(
        found["quartermaster_requests_oldest_waiting_seconds", "approver"], 7200
    )
    assert found["quartermaster_requests_past_target",] == 0
    Step.objects.filter(request=asked).update(due_at=ago(minutes=1))
    assert value("requests_past_target") == 1
    # The clock stands still while the requester is asked.
    Step.objects.filter(request=asked).update(paused_at=timezone.now())
    Request.objects.filter(pk=asked.pk).update(turn="requester")
    found = told()
    assert found["quartermaster_requests_past_target",] == 0
    assert found["quartermaster_requests_waiting", "approver"] == 0
    assert found["quartermaster_requests_waiting", "requester"] == 1


@pytest.mark.slow
def test_notices_on_their_way(vision: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    Delivery.objects.all().delete()
    assert value("notices_waiting", "email") == 0
    assert value("notices_oldest_waiting_seconds", "email") == 0
    notice = notice_for(vision.priya, at=ago(minutes=7))
    to_send = [
        Delivery.objects.create(notice=notice, way=way, next_at=timezone.now())
        for way in ("email", "backstage")
    ]
    assert value("notices_waiting", "email") == 1
    assert is_about(value("notices_oldest_waiting_seconds", "email"), 420)
    Delivery.objects.filter(pk=to_send[0].pk).update(
        state="parked", last_error="No such person."
    )
    assert value("notices_waiting", "email") == 0
    assert value("notices_waiting", "backstage") == 1
    assert value("parked_rows", "notice") == 1
    # Without a mail server, mails wait for nothing that anybody has to do.
    monkeypatch.setattr(settings.ENV, "mail_host", "")
    assert ("quartermaster_notices_waiting", "email") not in told()
    assert value("notices_waiting", "backstage") == 1


@pytest.mark.slow
def test_gpus(vision: Scene) -> None:
    Flavor.objects.update(gpus_ready=20, gpus_cordoned=4)
    factories.allocation(vision.ada, vision.tenancy, vision.flavor, gpus=2)
    Tenancy.objects.update(used={"a100": 3, "h100": 1}, used_at=ago(minutes=1))
    at = "training", "a100"
    assert value("obtainable_gpus", *at) == 24
    assert value("ready_gpus", *at) == 20
    assert value("cordoned_gpus", *at) == 4
    assert value("allocated_gpus", *at) == 2
    assert value("free_gpus", *at) == 22
    # What is borrowed is used, too.
    assert value("used_gpus", *at) == 3
    # What nobody has looked at lately is not idle.
    Tenancy.objects.update(used_at=ago(hours=1))
    assert ("quartermaster_used_gpus", *at) not in told()
    # Nobody sees what jobs have there.
    Tenancy.objects.update(used_at=ago(minutes=1))
    Cluster.objects.update(delivery="git")
    assert ("quartermaster_used_gpus", *at) not in told()
    assert value("allocated_gpus", *at) == 2


def test_jobs_that_wait(vision: Scene) -> None:
    assert value("jobs_waiting", "training") == 0
    assert value("jobs_oldest_waiting_seconds", "training") == 0
    since = ago(minutes=30)
    copy(vision.tenancy, "waits", {"gpus": 4, "since": since})
    copy(vision.tenancy, "waits-too", {"gpus": 1, "since": ago(minutes=3)})
    job = {"gpus": 8, "since": since}
    copy(vision.tenancy, "runs", job, holds="QuotaReserved", is_let_in=True)
    copy(vision.tenancy, "ran", job, holds="Finished", is_let_in=True)
    copy(vision.tenancy, "was-stopped", job, holds="Finished")
    assert value("jobs_waiting", "training") == 2
    assert value("jobs_waiting_gpus", "training") == 5
    assert is_about(value("jobs_oldest_waiting_seconds", "training"), 1800)


def test_runs(vision: Scene) -> None:
    for state in ("waiting", "running", "running"):
        factories.run(vision.tenancy, vision.ada, state=state)
    found = {key[1]: one for key, one in told().items() if key[0].endswith("_runs")}
    none = dict.fromkeys(("blocked", "submitted", "starting"), 0)
    assert found == {**none, "waiting": 1, "running": 2}


@pytest.mark.slow
def test_brakes() -> None:
    factories.cluster("training", braked_at=timezone.now(), brake_reason="Many.")
    factories.cluster("other")

    def found() -> list[float]:
        brakes = [("training", "repairs"), ("other", "repairs"), ("", "ends")]
        return [value("brake_on", *one) for one in [*brakes, ("", "directory")]]

    assert found() == [1, 0, 0, 0]
    Brake.objects.create(clock=timezone.now(), due=11, live=11)
    DirectoryBrake.objects.create(
        at=timezone.now(), cause="mass", people=40, reason="Too many."
    )
    assert found() == [1, 0, 1, 1]


def test_each_family_has_words_and_names_no_person_or_team(vision: Scene) -> None:
    vision.ask(4)
    text = scrape().content.decode()
    for family in text_string_to_metric_families(text):
        assert family.name.startswith("quartermaster_")
        assert family.documentation.endswith(".")
        assert family.type == (
            "counter" if family.name.endswith("audit_events") else "gauge"
        )
        for sample in family.samples:
            assert set(sample.labels) <= {
                "cluster",
                "flavor",
                "group",
                "kind",
                "state",
                "turn",
                "way",
            }
    for name in ("Vision", vision.tenancy.namespace, "Ada", "Okafor"):
        assert name not in text


def test_hostile_names_stay_values_of_labels() -> None:
    hostile = 'a"} 1\nquartermaster_forged{x="\\'
    family = Family(
        name="quartermaster_runs",
        words="Back\\slash\nand a line.",
        labels=["cluster"],
        samples={(hostile,): 1},
    )
    [found] = text_string_to_metric_families(text_of([family]).decode())
    [sample] = found.samples
    assert (found.name, sample.name) == ("quartermaster_runs", "quartermaster_runs")
    assert sample.labels == {"cluster": hostile}
    assert found.documentation == "Back\\slash\nand a line."


def test_a_group_that_breaks_is_named_and_the_others_are_told() -> None:
    factories.cluster("training")

    def forbid(execute: Any, sql: str, *args: Any) -> Any:
        if "workloads_clusterobject" in sql:
            raise ProgrammingError("permission denied")
        return execute(sql, *args)

    with connection.execute_wrapper(forbid):
        found = told()
    succeeded = {
        key[1]: one for key, one in found.items() if key[0].endswith("_success")
    }
    assert succeeded == {name: name != "jobs" for name in GROUPS}
    assert found["quartermaster_cluster_reachable", "training"] == 1
    assert ("quartermaster_jobs_waiting", "training") not in found
    assert all(one for key, one in told().items() if key[0].endswith("_success"))


def test_what_a_cluster_wrote_breaks_nothing(vision: Scene) -> None:
    for number, body in enumerate(({}, {"status": "x", "spec": [1]}, [], "x", 7)):
        ClusterObject.objects.create(
            cluster=vision.tenancy.cluster,
            kind="Workload",
            namespace=vision.tenancy.namespace,
            name=str(number),
            body=body,
        )
    found = told()
    assert found["quartermaster_cluster_reachable", "training"] == 1
    assert found["quartermaster_scrape_group_success", "jobs"] == 1


def test_while_the_database_is_away_the_scrape_fails_as_a_whole() -> None:
    def refuse(*args: object) -> None:
        raise OperationalError("connection refused at db.internal:5432")

    with connection.execute_wrapper(refuse):
        answer = scrape()
    assert answer.status_code == 503
    assert b"db.internal" not in answer.content


@pytest.mark.slow
def test_five_teams_and_fifty_take_the_same_statements_and_no_time() -> None:
    fleet(teams=5)
    few = statements()
    fleet(teams=45)
    began = time.monotonic()
    many = statements()
    assert time.monotonic() - began < 1
    assert few == many <= MAX_STATEMENTS
    assert value("jobs_waiting", "cluster-a") == 500


def models() -> list[type[Any]]:
    """Every model of the product."""
    return list(apps.get_models())
