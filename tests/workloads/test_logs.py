"""Logs of runs against a served cluster: nothing lost, nothing twice, and one stream for all who follow."""

import asyncio
import json
import threading
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Sequence,
)
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError

from accounts.credentials import Credential
from connectors import kubernetes as connector
from connectors.kubernetes import Cluster
from tests.provisioning.kubernetes import ADMIN, PORTAL, Kubernetes
from tests.services.process import wait_until
from web.refusals import Away, Conflict
from workloads.runs.logs import reading, rights
from workloads.runs.logs.reading import (
    Follower,
    Frames,
    Line,
    Source,
    frame,
    lines_in,
    read_log,
    readers,
    since_of,
)
from workloads.runs.logs.rights import Guard, Right

NAMESPACE, POD = "logs", ("v1", "Pod")
DEADLINE = 60.0
EVERYBODY = Guard(held=lambda rights: rights)
EVENT = "id: "
_numbers = count(1)


@dataclass
class Pod:
    """A pod whose state and log a test decides."""

    kubernetes: Kubernetes
    source: Source

    def says(self, **status: Any) -> None:
        """Let the cluster say this of it."""
        where = f"/api/v1/namespaces/{NAMESPACE}/pods/{self.source.pod}/status"
        self.kubernetes.write("PATCH", where, {"status": status})

    def runs(self, *, since: timedelta = timedelta(0)) -> None:
        """Start its container, so long ago."""
        started = {"startedAt": stamp(datetime.now(UTC) - since)}
        self.says(phase="Running", containerStatuses=[container(running=started)])

    def ends(self) -> None:
        """End its container, and with it its log."""
        found = self.kubernetes.get(POD, self.source.pod, NAMESPACE)
        assert found is not None
        [now] = found["status"]["containerStatuses"]
        started = now["state"]["running"]["startedAt"]
        ended = {
            "exitCode": 0,
            "startedAt": started,
            "finishedAt": stamp(datetime.now(UTC)),
        }
        self.says(phase="Succeeded", containerStatuses=[container(terminated=ended)])

    @property
    def is_placed(self) -> bool:
        """Whether it is on a node: until then its log is empty, whatever its status says."""
        found = self.kubernetes.get(POD, self.source.pod, NAMESPACE)
        return found is not None and bool(found["spec"].get("nodeName"))

    @property
    def reads(self) -> int:
        """How much was read of the cluster so far."""
        return self.kubernetes.cluster.requests["reads"]


def stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def container(**state: Any) -> dict[str, Any]:
    same = {
        "name": "main",
        "image": "x:1",
        "imageID": "",
        "containerID": "x",
        "ready": True,
        "restartCount": 0,
    }
    return {**same, "state": state}


Make = Callable[..., Pod]


@pytest.fixture
def make(
    kubernetes: Kubernetes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Make]:
    """Makes a pod that is on a node and has not started: so many lines, so many seconds between two."""
    monkeypatch.setattr(reading, "PAUSE", 0.02)
    monkeypatch.setattr(reading, "LINGER", 0.02)
    monkeypatch.setattr(connector, "LOG_SILENCE", 1.0)
    kubernetes.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    )
    clients = []

    def pod(
        lines: int = 0, *, every: float = 0.001, node: str = "cpu-0", token: str = ADMIN
    ) -> Pod:
        name = f"worker-{next(_numbers)}"
        client = Cluster.from_kubeconfig(
            tmp_path / kubernetes.kubeconfig(tmp_path, token)
        )
        clients.append(client)
        said = (
            {"test/log": "\n".join(f"line {number}" for number in range(lines))}
            if lines
            else {}
        )
        kubernetes.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": NAMESPACE,
                    "annotations": {
                        "test/start-after": "86400",
                        "test/log-every": str(every),
                        **said,
                    },
                },
                "spec": {
                    "containers": [{"name": "main", "image": "x:1"}],
                    **(
                        {"nodeName": node}
                        if node
                        else {"nodeSelector": {"pool": "late"}}
                    ),
                },
            }
        )
        return Pod(kubernetes, Source("training", NAMESPACE, name, lambda: client))

    yield pod
    wait_until(lambda: not threads(), what="the readers to end")
    for client in clients:
        client.close()


def threads() -> list[str]:
    """The readers that run."""
    return [each.name for each in threading.enumerate() if each.name.startswith("log ")]


def run(story: Callable[[], Awaitable[None]]) -> None:
    """Run an asynchronous story in a loop of its own."""

    async def whole() -> None:
        async with asyncio.timeout(DEADLINE):
            await story()

    asyncio.run(whole())


def followed(
    pod: Pod,
    *,
    user: int = 1,
    after: str = "",
    begun: Sequence[Line] = (),
    guard: Guard = EVERYBODY,
) -> AsyncIterator[str]:
    right = Right(Credential(user, token=user), team_id=1)
    return aiter(Frames(pod.source, right=right, after=after, begun=begun, guard=guard))


async def meanwhile(do: Callable[..., object], *given: Any, **named: Any) -> None:
    """Do something that would hold the loop up."""
    await asyncio.to_thread(do, *given, **named)


async def closed(frames: AsyncIterator[str]) -> None:
    """Go away."""
    assert isinstance(frames, AsyncGenerator)
    await frames.aclose()


async def until(frames: AsyncIterator[str], wanted: str) -> str:
    """Read until something was said; everything that was said by then."""
    heard = ""
    async for one in frames:
        heard += one
        if wanted in heard:
            return heard
    raise AssertionError(heard)


def texts(heard: str) -> list[str]:
    """The lines that were heard."""
    events = [one.split("\n") for one in heard.split("\n\n") if one.startswith(EVENT)]
    return [data.removeprefix("data: ") for _, data in events]


def places(heard: str) -> list[str]:
    """The places of the lines that were heard."""
    return [
        one.split("\n")[0].removeprefix(EVENT)
        for one in heard.split("\n\n")
        if one.startswith(EVENT)
    ]


def numbered(*numbers: int) -> list[str]:
    return [f"line {number}" for number in range(*numbers)]


AT = "2026-11-23T10:00:00.123456789Z"


def test_lines_of_one_nanosecond_are_told_apart_and_go_on_behind_a_place() -> None:
    raw = [
        f"{AT} one",
        "",
        f"{AT} two",
        "2026-11-23T10:00:00.2Z three",
        "2026-11-23T10:00:01Z ",
        f"{AT} five",
    ]
    found = [*lines_in(raw[:-1])]
    assert [one.text for one in found] == ["one", "two", "three", ""]
    assert [one.place for one in found] == [
        f"{AT}.0",
        f"{AT}.1",
        "2026-11-23T10:00:00.2Z.0",
        "2026-11-23T10:00:01Z.0",
    ]
    for number, one in enumerate(found):
        assert reading.PLACE.fullmatch(one.place)
        assert [*lines_in(raw[:-1], after=one.place)] == found[number + 1 :]


def test_a_node_in_another_time_zone_and_one_that_complains_have_places_too() -> None:
    raw = [
        "unable to retrieve container logs",
        "2026-11-23T11:00:00.000000001+01:00 one",
        "not a time",
    ]
    found = [*lines_in(raw)]
    assert [(one.place, one.text) for one in found] == [
        ("0001-01-01T00:00:00Z.0", raw[0]),
        ("2026-11-23T10:00:00.000000001Z.0", "one"),
        ("2026-11-23T10:00:00.000000001Z.1", "not a time"),
    ]
    assert [*lines_in(raw, after=found[0].place)] == found[1:]


def test_the_cluster_is_asked_from_the_second_of_a_place() -> None:
    assert since_of("") == ""
    assert since_of(f"{AT}.12") == "2026-11-23T10:00:00Z"
    assert since_of("2026-11-23T10:00:00Z.0") == "2026-11-23T10:00:00Z"


def test_of_a_progress_bar_what_a_terminal_would_show_is_sent() -> None:
    assert (
        frame(Line(f"{AT}.0", "10 %\r50 %\r100 %\r")) == f"id: {AT}.0\ndata: 100 %\n\n"
    )


def test_what_was_written_comes_then_what_is_written_then_the_end(make: Make) -> None:
    pod = make(10_000, every=0.05)
    pod.runs(since=timedelta(seconds=2))

    async def story() -> None:
        frames = followed(pod)
        assert await anext(frames) == "retry: 1000\n\n"
        heard = await until(frames, "line 60\n")
        await meanwhile(pod.ends)
        heard += await until(frames, "event: end")
        assert heard.endswith("event: end\ndata: \n\n")
        said = texts(heard)
        assert said == numbered(len(said))
        assert len(set(places(heard))) == len(said)

    run(story)


@pytest.mark.slow
@pytest.mark.parametrize("bytes_", [0, 1, 41, 5_000, 30_000])
def test_a_connection_that_breaks_goes_on_without_loss_or_repetition(
    make: Make, bytes_: int
) -> None:
    pod = make(900)
    pod.runs(since=timedelta(seconds=5))
    pod.ends()
    pod.kubernetes.fail("/log$", times=3, drop_after=bytes_)

    async def story() -> None:
        assert texts(await until(followed(pod), "event: end")) == numbered(900)

    run(story)


def test_a_server_that_ends_a_log_early_is_asked_for_the_rest(make: Make) -> None:
    pod = make(1_000, every=0.02)
    pod.runs(since=timedelta(seconds=2))
    begun = read_log(pod.source, tail=1_000)[:30]
    # As an API server does that is restarted: the answer ends in order, and the program goes on.
    body = "".join(f"{one.place.rpartition('.')[0]} {one.text}\n" for one in begun)
    pod.kubernetes.fail("/log$", times=1, status=200, body=body)

    async def story() -> None:
        frames = followed(pod)
        said = texts(await until(frames, "line 120\n"))
        assert said == numbered(len(said))
        await closed(frames)

    run(story)


def test_what_was_written_between_the_last_read_and_the_end_of_the_pod_comes_too(
    make: Make,
) -> None:
    pod = make(3)
    pod.runs(since=timedelta(seconds=1))
    pod.ends()
    # Read before anything was written; the pod is over when its reader looks.
    pod.kubernetes.fail("/log$", times=1, status=200, body="\n")

    async def story() -> None:
        assert texts(await until(followed(pod), "event: end")) == numbered(3)

    run(story)


@pytest.mark.parametrize("node", ["", "cpu-0"])
def test_a_pod_that_has_not_started_is_waited_for(make: Make, node: str) -> None:
    pod = make(3, node=node)
    before = pod.reads

    async def story() -> None:
        frames = followed(pod)
        assert await anext(frames) == "retry: 1000\n\n"
        waiting = asyncio.ensure_future(until(frames, "event: end"))
        await meanwhile(
            wait_until, lambda: pod.reads > before + 5, what="it to be asked for again"
        )
        assert not waiting.done()
        if not node:
            node_of = {"metadata": {"labels": {"pool": "late"}}}
            await meanwhile(
                pod.kubernetes.patch, ("v1", "Node"), "cpu-0", None, node_of
            )
            await meanwhile(
                wait_until, lambda: pod.is_placed, what="it to be put on the node"
            )
        await meanwhile(pod.runs, since=timedelta(seconds=1))
        await meanwhile(pod.ends)
        assert texts(await waiting) == numbered(3)

    run(story)


def test_a_program_that_runs_and_ends_between_two_looks_keeps_its_log(
    make: Make,
) -> None:
    pod = make(3)
    pod.runs(since=timedelta(seconds=1))
    pod.ends()
    # Its reader asked before it had started; the pod is over when the reader looks.
    not_yet = 'container "main" in pod "worker" is waiting to start: ContainerCreating'
    body = json.dumps(
        {"kind": "Status", "code": 400, "reason": "BadRequest", "message": not_yet}
    )
    pod.kubernetes.fail("/log$", times=1, status=400, body=body)

    async def story() -> None:
        assert texts(await until(followed(pod), "event: end")) == numbered(3)

    run(story)


def test_a_pod_that_failed_before_its_container_started_ends_with_a_sentence(
    make: Make,
) -> None:
    pod = make(3)
    pod.says(phase="Failed")

    async def story() -> None:
        heard = await until(followed(pod), "event: end")
        assert heard.endswith(
            "event: end\ndata: The pod ended before its program began.\n\n"
        )

    run(story)
    with pytest.raises(Conflict, match="has not started yet"):
        read_log(pod.source, tail=10)
    with pytest.raises(Conflict, match="ended before its program began"):
        read_log(replace(pod.source, is_over=True), tail=10)


def test_a_pod_that_is_gone_says_so(make: Make) -> None:
    pod = make(10_000, every=0.02)
    pod.runs(since=timedelta(seconds=1))

    async def story() -> None:
        frames = followed(pod)
        await until(frames, "line 40\n")
        where = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod.source.pod}"
        await meanwhile(pod.kubernetes.write, "DELETE", f"{where}?gracePeriodSeconds=0")
        await until(frames, f"event: end\ndata: {reading.POD_GONE}\n\n")
        await until(followed(pod), f"event: end\ndata: {reading.POD_GONE}\n\n")

    run(story)
    with pytest.raises(Conflict, match="gone") as refusal:
        read_log(pod.source, tail=10)
    assert refusal.value.code == "log_gone"


def test_a_cluster_that_is_silent_is_told_and_that_it_answers_again(make: Make) -> None:
    pod = make(40, every=0.001)
    pod.runs(since=timedelta(seconds=5))
    pod.kubernetes.fail("/log$", status=503)

    async def story() -> None:
        frames = followed(pod)
        await until(frames, f"event: waiting\ndata: {reading.SILENT}\n\n")
        later = followed(pod, user=2)
        await until(later, "event: waiting")
        pod.kubernetes.cluster.faults.clear()
        heard = await until(frames, "line 39\n")
        assert heard.startswith("event: live\ndata: \n\n")
        assert "event: waiting" not in heard
        await closed(frames)
        await closed(later)

    run(story)


def test_a_pause_of_the_program_is_no_silence_of_the_cluster(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "LOG_SILENCE", 0.05)
    pod = make(2, every=0.001)
    pod.runs(since=timedelta(seconds=1))

    async def story() -> None:
        frames = followed(pod)
        await until(frames, "line 1\n")
        before = pod.reads
        await meanwhile(
            wait_until, lambda: pod.reads > before + 2, what="it to be asked for again"
        )
        await meanwhile(pod.ends)
        assert "event: waiting" not in await until(frames, "event: end")

    run(story)


def test_a_right_that_is_missing_is_not_taken_for_a_pod_that_is_gone(
    make: Make,
) -> None:
    pod = make(3, token=PORTAL)
    pod.runs(since=timedelta(seconds=1))

    async def story() -> None:
        heard = await until(followed(pod), "event: end")
        assert "cannot get resource" in heard

    run(story)
    with pytest.raises(Away, match="refuses its log"):
        read_log(pod.source, tail=10)


def test_two_hundred_followers_cost_one_stream(make: Make) -> None:
    pod = make(10_000, every=0.05)
    pod.runs(since=timedelta(seconds=2))
    before = pod.reads

    async def story() -> None:
        everybody = [followed(pod, user=number) for number in range(200)]
        heard = await asyncio.gather(*(until(one, "line 60\n") for one in everybody))
        assert pod.reads == before + 1
        assert threads() == [f"log {pod.source.pod}"]
        for each in heard:
            said = texts(each)
            assert said == numbered(len(said))
        for one in everybody:
            await closed(one)

    run(story)


@pytest.mark.slow
def test_who_comes_back_with_a_place_gets_exactly_what_follows_it(make: Make) -> None:
    pod = make(4_000)
    pod.runs(since=timedelta(seconds=9))
    pod.ends()
    placed = read_log(pod.source, tail=4_000)
    assert [one.text for one in placed] == numbered(4_000)

    async def story() -> None:
        for number in (0, 7, 2_500, 3_998, 3_999):
            heard = await until(followed(pod, after=placed[number].place), "event: end")
            assert texts(heard) == numbered(number + 1, 4_000)
            assert "missed" not in heard

    run(story)
    # The same of what is read at once, at most so much at a time.
    assert read_log(pod.source, tail=1, after=placed[10].place) == placed[11:]


def test_who_wants_the_last_lines_gets_them_and_what_follows_with_others_and_alone(
    make: Make,
) -> None:
    pod = make(10_000, every=0.02)
    pod.runs(since=timedelta(seconds=2))

    async def story() -> None:
        first = followed(pod)
        await until(first, "line 60\n")
        for others in (True, False):
            if not others:
                await closed(first)
                await meanwhile(wait_until, lambda: not threads(), what="it to end")
            begun = await asyncio.to_thread(read_log, pod.source, tail=3)
            heard = followed(pod, user=2, begun=begun)
            number = int(begun[0].text.removeprefix("line "))
            said = texts(await until(heard, f"line {number + 20}\n"))
            assert said == numbered(number, number + len(said))
            await closed(heard)

    run(story)


def test_who_joins_others_with_a_place_gets_what_follows_it_too(make: Make) -> None:
    pod = make(10_000, every=0.05)
    pod.runs(since=timedelta(seconds=2))

    async def story() -> None:
        first = followed(pod)
        heard = await until(first, "line 50\n")
        second = followed(pod, user=2, after=places(heard)[20])
        said = texts(await until(second, "line 60\n"))
        assert said == numbered(21, 21 + len(said))
        for one in (first, second):
            await closed(one)

    run(story)


def test_a_place_that_is_not_kept_any_more_says_that_lines_are_left_out(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_KEPT", 100)
    pod = make(500)
    pod.runs(since=timedelta(seconds=5))
    pod.ends()
    first = f"{read_log(pod.source, tail=500)[0].place}"

    async def story() -> None:
        heard = await until(followed(pod, after=first), "event: end")
        assert "event: missed\ndata: some\n\n" in heard
        assert texts(heard) == numbered(400, 500)

    run(story)


def test_a_slow_follower_is_told_how_many_lines_it_missed(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_KEPT", 1_000)
    pod = make(9_000, every=0.0003)
    pod.runs(since=timedelta(seconds=1))

    async def story() -> None:
        frames = followed(pod)
        await anext(frames)
        heard = await anext(frames)
        [reader] = readers._by_pod.values()
        many = reader._count + 1_500
        await meanwhile(
            wait_until, lambda: reader._count > many, what="more than is kept"
        )
        await meanwhile(pod.ends)
        heard += await until(frames, "event: end")
        # What was written before the first look is behind nothing that was heard.
        begun = heard.index("data: line")
        missed = [
            one
            for one in heard[begun:].split("\n\n")
            if one.startswith("event: missed")
        ]
        left_out = sum(int(one.rpartition(" ")[2]) for one in missed)
        assert left_out >= 500
        numbers = [int(one.removeprefix("line ")) for one in texts(heard)]
        assert numbers[-1] - numbers[0] + 1 == len(numbers) + left_out

    run(story)


def test_who_follows_too_many_is_told_so(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_READERS", 2)
    pods = [make(100, every=0.02) for _ in range(3)]
    for pod in pods:
        pod.runs()

    async def story() -> None:
        mine = [followed(pods[0]) for _ in range(reading.MAX_FOLLOWED)]
        for one in mine:
            await anext(one)
        heard = await until(followed(pods[0]), "event: refused")
        assert "retry: 15000\n" in heard
        assert "You follow 10 logs already. Close some first." in heard
        await closed(mine.pop())
        mine.append(followed(pods[1]))
        await anext(mine[-1])
        others = await until(followed(pods[2], user=2), "event: refused")
        assert "Too many logs are followed now" in others
        for one in mine:
            await closed(one)

    run(story)


def test_a_reader_without_followers_ends_and_gives_its_connection_back(
    make: Make,
) -> None:
    pod = make(10_000, every=0.01)
    pod.runs()
    listeners = pod.kubernetes.cluster.store._listeners
    before = [*listeners]

    async def story() -> None:
        frames = followed(pod)
        await until(frames, "line 3\n")
        assert listeners != before
        await closed(frames)

    run(story)
    wait_until(lambda: not threads(), what="the reader to end")
    wait_until(lambda: listeners == before, what="the stream to end")
    assert readers._by_pod == {}


def test_who_comes_as_a_reader_rests_is_read_for(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LINGER", DEADLINE)
    pod = make(10_000, every=0.01)
    pod.runs()

    async def story() -> None:
        frames = followed(pod)
        heard = await until(frames, "line 3\n")
        await closed(frames)
        wait_for = len(texts(heard)) + 30
        again = followed(pod, after=places(heard)[-1])
        heard += await until(again, f"line {wait_for}\n")
        assert texts(heard) == numbered(len(texts(heard)))
        monkeypatch.setattr(reading, "LINGER", 0.02)
        await closed(again)

    run(story)


def test_a_log_that_is_silent_says_that_it_is_there(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "PING", 0.05)
    pod = make(1)
    pod.runs()

    async def story() -> None:
        frames = followed(pod)
        await until(frames, ": still here\n\n")
        await meanwhile(pod.ends)
        await until(frames, "event: end")

    run(story)


def test_whoever_may_read_no_more_hears_no_more_and_the_others_go_on(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rights, "EVERY", 0.02)
    pod = make(10_000, every=0.01)
    pod.runs()
    taken: set[int] = set()
    guard = Guard(
        held=lambda all_: {one for one in all_ if one.credential.token not in taken}
    )

    async def story() -> None:
        hers, his = (followed(pod, user=number, guard=guard) for number in (1, 2))
        heard = await until(hers, "line 3\n")
        await until(his, "line 3\n")
        taken.add(1)
        heard += "".join([one async for one in hers])
        # Whoever reads it asks again, and is refused in words.
        assert "event: end" not in heard
        said = texts(heard)
        assert said == numbered(len(said))
        await until(his, f"line {len(said) + 50}\n")
        await closed(his)

    run(story)


def test_a_silent_stream_ends_with_its_right_too(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rights, "EVERY", 0.02)
    pod = make(1)
    pod.runs()

    async def story() -> None:
        frames = followed(pod, guard=Guard(held=lambda rights: set()))
        assert await anext(frames) == "retry: 1000\n\n"
        assert "event: end" not in "".join([one async for one in frames])

    run(story)


def test_the_rights_of_two_hundred_followers_are_looked_at_together(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rights, "EVERY", 0.02)
    pod = make(10_000, every=0.05)
    pod.runs(since=timedelta(seconds=2))
    looks: list[int] = []
    everybody_came = threading.Event()

    def held(asked: Collection[Right]) -> Collection[Right]:
        looks.append(len(asked))
        if len(asked) == 200:
            everybody_came.set()
        return asked

    async def story() -> None:
        guard = Guard(held=held)
        everybody = [followed(pod, user=n, guard=guard) for n in range(200)]
        await asyncio.gather(*(until(one, "line 20\n") for one in everybody))
        await meanwhile(everybody_came.wait, DEADLINE)
        assert [one.name for one in threading.enumerate()].count("rights of logs") == 1
        for one in everybody:
            await closed(one)

    run(story)
    wait_until(
        lambda: all(one.name != "rights of logs" for one in threading.enumerate()),
        what="the guard to rest",
    )
    assert max(looks) == 200


def test_a_look_that_fails_ends_nobodys_stream_and_the_next_one_counts(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rights, "EVERY", 0.02)
    pod = make(1)
    pod.runs()
    losses = ["away", "away again"]

    def held(asked: Collection[Right]) -> Collection[Right]:
        if losses:
            raise OperationalError(losses.pop())
        return set()

    async def story() -> None:
        frames = followed(pod, guard=Guard(held=held))
        assert "event: end" not in "".join([one async for one in frames])
        assert not losses

    run(story)


def test_a_stream_ends_after_its_time_and_is_asked_for_again(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "LONGEST", 0.2)
    pod = make(10_000, every=0.01)
    pod.runs()

    async def story() -> None:
        heard = "".join([one async for one in followed(pod)])
        assert "event: end" not in heard
        after = places(heard)[-1]
        more = "".join([one async for one in followed(pod, after=after)])
        said = texts(heard + more)
        assert said == numbered(len(said))

    run(story)


def test_waking_somebody_whose_loop_has_ended_is_harmless() -> None:
    loop = asyncio.new_event_loop()
    follower = Follower(1, loop)
    loop.close()
    follower.wake()
