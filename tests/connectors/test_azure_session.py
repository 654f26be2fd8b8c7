"""Calls to Azure and their long operations, with everything that can go wrong on the way."""

import base64
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.azure import pipeline
from connectors.azure.compute import AzureCompute
from connectors.azure.session import AzureSession, Operation
from connectors.errors import AnswerLost, PermanentError, TemporaryError
from tests.sandbox.azure.running import GROUP, HERE, Running

ROOT = Path(__file__).parents[2]
A100 = "Standard_NC24ads_A100_v4"


@pytest.fixture
def session(azure: Running) -> AzureSession:
    return azure.session()


@pytest.fixture
def compute(session: AzureSession) -> AzureCompute:
    made = AzureCompute(session)
    made.ensure_group(GROUP, "research", location="eastus", zones=["1"])
    return made


def reserve(compute: AzureCompute, capacity: int = 2) -> Operation:
    return compute.begin_create_reservation(
        GROUP,
        "research",
        "a100",
        location="eastus",
        size=A100,
        capacity=capacity,
        zone="1",
    )


def state(compute: AzureCompute) -> str:
    found = compute.reservation(GROUP, "research", "a100")
    return found.state if found else ""


def asked(azure: Running) -> int:
    """How often what a fault of a hundred times is for was called."""
    return 100 - sum(fault.times for fault in azure.azure.faults._faults)


def connections(session: AzureSession) -> list[int]:
    """How many were made, for each server."""
    pools = session._calls._transport.session.get_adapter("https://").poolmanager.pools
    known = pools.keys()
    return [pools[key].num_connections for key in known]


# Long operations


def test_an_operation_is_begun_and_looked_at(
    azure: Running, compute: AzureCompute
) -> None:
    azure.pace(60)
    began = time.monotonic()
    operation = reserve(compute)
    assert (operation.is_done, operation.retry_after) == (False, 1.0)
    looked = compute.session.poll(operation.token)
    assert looked == operation
    # Nobody waited for it.
    assert time.monotonic() - began < 5
    azure.advance(61)
    assert compute.session.poll(operation.token).is_done
    assert compute.session.poll(operation.token).is_done
    assert state(compute) == "Succeeded"


def test_no_thread_waits_for_an_operation(
    azure: Running, compute: AzureCompute
) -> None:
    azure.pace(60)
    before = threading.active_count()
    reserve(compute)
    assert threading.active_count() == before


@pytest.mark.slow
def test_another_process_goes_on_with_it(azure: Running, compute: AzureCompute) -> None:
    """The worker that began it is dead: all that is left of it is the token."""
    azure.pace(60)
    token = reserve(compute).token
    compute.session.close()
    given = azure.settings
    program = (
        "import json, sys\n"
        "from connectors.azure.session import AzureSession, AzureSettings\n"
        "settings, token = json.load(sys.stdin)\n"
        "session = AzureSession(AzureSettings(**settings))\n"
        "print(session.poll(token).is_done)\n"
        "session.close()\n"
    )
    told = json.dumps([{**vars(given), "token_file": str(given.token_file)}, token])

    def poll() -> str:
        ended = subprocess.run(
            [sys.executable, "-c", program],
            input=told,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()

    assert poll() == "False"
    azure.advance(61)
    assert poll() == "True"
    found = AzureCompute(azure.session())
    assert [one.name for one in found.reservations(GROUP, "research")] == ["a100"]


def test_a_second_session_begins_nothing_anew(
    azure: Running, compute: AzureCompute
) -> None:
    azure.pace(60)
    token = reserve(compute).token
    azure.fault("PUT", "", status=500, times=100)
    assert not azure.session().poll(token).is_done
    assert asked(azure) == 0


def test_a_beginning_that_is_sent_again_uses_the_same_connection(
    azure: Running, compute: AzureCompute
) -> None:
    reserve(compute)
    before = connections(compute.session)
    azure.fault("PUT", "capacityReservations/", status=503, retry_after=0)
    reserve(compute, 3)
    assert connections(compute.session) == before


def test_an_operation_that_fails_says_why(
    azure: Running, compute: AzureCompute
) -> None:
    azure.pace(60)
    error = {
        "code": "AllocationFailed",
        "message": "We do not have sufficient capacity.",
    }
    azure.fault(
        "PUT", "capacityReservations/", operation={"error": error, "seconds": 60}
    )
    token = reserve(compute).token
    azure.advance(61)
    for _ in range(2):
        with pytest.raises(PermanentError, match="sufficient capacity") as failed:
            compute.session.poll(token)
        assert failed.value.code == "no_capacity"


def test_an_operation_may_fail_at_once(azure: Running, compute: AzureCompute) -> None:
    azure.fault(
        "PUT",
        "capacityReservations/",
        operation={"error": {"code": "AllocationFailed", "message": ""}},
    )
    operation = reserve(compute)
    with pytest.raises(PermanentError) as failed:
        compute.session.poll(operation.token)
    assert failed.value.code == "no_capacity"


def test_an_operation_that_hangs_is_never_over(
    azure: Running, compute: AzureCompute
) -> None:
    azure.fault("PUT", "capacityReservations/", operation={"hangs": True})
    token = reserve(compute).token
    azure.advance(30 * 86_400)
    assert not compute.session.poll(token).is_done


def test_an_operation_that_azure_forgot_is_not_found(
    azure: Running, compute: AzureCompute
) -> None:
    azure.pace(60)
    token = reserve(compute).token
    azure.azure.state.table("operations").clear()
    with pytest.raises(PermanentError) as gone:
        compute.session.poll(token)
    assert gone.value.code == "not_found"


@pytest.mark.parametrize("token", ["", "nonsense", "bm9uc2Vuc2U=", "e30="])
def test_a_broken_token_is_none(session: AzureSession, token: str) -> None:
    with pytest.raises(PermanentError) as refused:
        session.poll(token)
    assert refused.value.code == "bad_token"


def test_a_token_that_names_another_server_is_not_followed(
    azure: Running, compute: AzureCompute
) -> None:
    azure.pace(60)
    token = reserve(compute).token
    elsewhere = replace(azure.settings, arm_url="https://localhost:1")
    other = AzureSession(elsewhere)
    azure.opened.append(other)
    with pytest.raises(PermanentError) as refused:
        other.poll(token)
    assert refused.value.code == "foreign_link"


def test_a_token_holds_no_secret(azure: Running, compute: AzureCompute) -> None:
    azure.pace(60)
    operation = reserve(compute)
    held = compute.session._calls.credential.get_token(
        "https://management.azure.com/.default"
    ).token
    inside = base64.b64decode(operation.token).decode("latin-1")
    assert "azure-asyncoperation" in inside.lower()
    for secret in (held, azure.settings.client_secret):
        assert secret not in operation.token + inside
    assert len(operation.token) < 6000


# Answers that do not come, or in part


def test_a_reading_whose_answer_was_lost_is_sent_again(
    azure: Running, compute: AzureCompute
) -> None:
    azure.fault("GET", "/usages", drop=True)
    assert compute.usages("eastus")


def test_a_change_whose_answer_was_lost_is_sent_once_and_said_to_be_lost(
    azure: Running, compute: AzureCompute
) -> None:
    azure.pace(60)
    azure.fault("PUT", "capacityReservations/", drop=True, times=100)
    with pytest.raises(AnswerLost):
        reserve(compute)
    assert asked(azure) == 1
    azure.admin("DELETE", "/sandbox/faults")
    # It was done; the same once more is the same reservation, which is busy until then.
    assert state(compute) == "Creating"
    with pytest.raises(TemporaryError):
        reserve(compute)
    azure.advance(61)
    assert reserve(compute).is_done
    assert len(compute.reservations(GROUP, "research")) == 1


@pytest.mark.parametrize("what", ["cut", "truncate"])
def test_half_an_answer_is_none(
    azure: Running, compute: AzureCompute, what: str
) -> None:
    azure.fault("GET", "/usages", **{what: 25}, times=10)
    with pytest.raises(TemporaryError):
        compute.usages("eastus")


@pytest.mark.parametrize("what", ["cut", "truncate"])
def test_a_beginning_of_which_half_is_told_is_lost(
    azure: Running, compute: AzureCompute, what: str
) -> None:
    azure.fault("PUT", "capacityReservations/", **{what: 25}, times=10)
    with pytest.raises(AnswerLost):
        reserve(compute)
    assert state(compute) == "Succeeded"


@pytest.mark.slow
@pytest.mark.parametrize("what", [{"cut": 10}, {"truncate": 10}, {"drop": True}])
def test_a_look_of_which_half_is_told_is_taken_again(
    azure: Running, compute: AzureCompute, what: dict[str, Any]
) -> None:
    azure.pace(60)
    token = reserve(compute).token
    azure.fault("GET", "/operations/", **what, times=10)
    with pytest.raises(TemporaryError):
        compute.session.poll(token)
    azure.admin("DELETE", "/sandbox/faults")
    assert not compute.session.poll(token).is_done


@pytest.mark.parametrize(
    "body",
    [
        "[]",
        "{}",
        '{"value": null}',
        '{"value": [{}]}',
        '{"value": [{"name": {}}]}',
        "null",
        "<html>",
    ],
)
def test_an_answer_of_another_shape_is_none(
    azure: Running, compute: AzureCompute, body: str
) -> None:
    azure.fault("GET", "/usages", status=200, body=body, times=10)
    if body == "{}":
        # Microsoft's own library takes this for an empty list.
        assert compute.usages("eastus") == []
        return
    with pytest.raises(TemporaryError):
        compute.usages("eastus")


# Waiting


def test_silence_ends(azure: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "READ_SECONDS", 0.3)
    compute = AzureCompute(azure.session())
    compute.usages("eastus")
    azure.fault("GET", "/usages", hang=20, times=100)
    began = time.monotonic()
    with pytest.raises(AnswerLost):
        compute.usages("eastus")
    assert time.monotonic() - began < 3
    # Who did not answer in time is not asked again at once.
    assert asked(azure) == 1


def test_nobody_there_is_said(azure: Running) -> None:
    compute = AzureCompute(azure.session(arm_url="https://localhost:1"))
    began = time.monotonic()
    with pytest.raises(TemporaryError, match="cannot be reached"):
        compute.usages("eastus")
    assert time.monotonic() - began < 5


def test_a_server_that_fails_for_a_moment_is_asked_again(
    azure: Running, compute: AzureCompute
) -> None:
    azure.fault("GET", "/usages", status=503, times=2)
    assert compute.usages("eastus")


def test_a_server_that_goes_on_failing_is_asked_three_times(
    azure: Running, compute: AzureCompute
) -> None:
    azure.fault("GET", "/usages", status=503, times=100)
    began = time.monotonic()
    with pytest.raises(TemporaryError):
        compute.usages("eastus")
    assert asked(azure) == 3
    assert time.monotonic() - began < 8


def test_a_short_wait_is_waited(azure: Running, compute: AzureCompute) -> None:
    azure.fault("GET", "/usages", status=429, retry_after=1)
    began = time.monotonic()
    assert compute.usages("eastus")
    assert time.monotonic() - began >= 1


def test_a_long_wait_is_the_callers(azure: Running, compute: AzureCompute) -> None:
    azure.fault("GET", "/usages", status=429, retry_after=60, times=100)
    began = time.monotonic()
    with pytest.raises(TemporaryError) as throttled:
        compute.usages("eastus")
    assert throttled.value.retry_after == 60.0
    assert time.monotonic() - began < 2
    assert asked(azure) == 1


def test_a_look_is_told_to_wait(azure: Running, compute: AzureCompute) -> None:
    azure.pace(60)
    token = reserve(compute).token
    azure.fault("GET", "/operations/", status=429, retry_after=60)
    with pytest.raises(TemporaryError) as throttled:
        compute.session.poll(token)
    assert throttled.value.retry_after == 60.0
    assert not compute.session.poll(token).is_done


# Links


@pytest.mark.parametrize(
    "link", ["https://example.com/next", "https://localhost:1/next"]
)
def test_a_page_elsewhere_is_not_read(
    azure: Running, compute: AzureCompute, link: str
) -> None:
    azure.fault(
        "GET", "/usages", status=200, body=json.dumps({"value": [], "nextLink": link})
    )
    with pytest.raises(PermanentError) as refused:
        compute.usages("eastus")
    assert refused.value.code == "foreign_link"


# Processes


def test_a_child_has_connections_of_its_own(
    azure: Running, compute: AzureCompute
) -> None:
    assert compute.usages("eastus")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, str(len(compute.usages("eastus"))).encode())
        finally:
            os._exit(0)
    os.close(writing)
    try:
        assert int(os.read(reading, 100)) == len(compute.usages("eastus"))
    finally:
        os.close(reading)
        os.waitpid(child, 0)


def test_threads_share_a_session(azure: Running, compute: AzureCompute) -> None:
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(len(compute.usages("eastus"))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_neither_a_proxy_nor_a_ca_of_the_environment_is_used(
    azure: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://localhost:1")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/nowhere.pem")
    assert AzureCompute(azure.session()).usages("eastus")


def test_another_authority_is_not_trusted(azure: Running) -> None:
    with pytest.raises(TemporaryError):
        AzureCompute(azure.session(ca_file=None)).usages("eastus")


def test_it_reads_what_no_client_of_microsofts_asks(session: AzureSession) -> None:
    path = f"{HERE}/providers/Microsoft.Authorization/permissions"
    assert session.get(path, "2022-04-01")["value"]
    with pytest.raises(PermanentError) as refused:
        session.get(f"{HERE}/providers/Microsoft.Nothing/things", "2022-04-01")
    assert refused.value.code == "not_found"


def test_settings_hide_the_secret(azure: Running) -> None:
    assert azure.settings.client_secret not in repr(azure.settings)
    assert "token" not in repr(Operation(False, "x" * 40))


IMPORTING = """
import sys
from connectors.azure import (authorization, cognitive_services, compute, container_registry, container_service,
    quota, retail_prices, session)
session.AzureSession(session.AzureSettings(subscription_id="s", tenant_id="t"))
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("azure", "msal")))
"""


def test_nothing_of_microsofts_is_imported_before_it_is_needed() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", IMPORTING],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout.strip() == "[]", ended.stderr
