"""Whatever is done and whatever fails, in any order: afterwards every promise holds."""

import gc
import logging
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from secrets import SystemRandom

import pytest
from django.conf import settings
from redis import Redis as Broker

from allocations.ends import sweep as ending
from connectors import kubernetes as connector
from offboarding import plan as leaving_plan
from provisioning import delivery
from provisioning.drift import brake
from sandbox.kubernetes import controllers
from tests.faults.proxy import proxied
from tests.provisioning.kubernetes import served
from tests.soak.iterations import DONE, STRUCK, iteration
from tests.soak.walk import Tally
from tests.soak.walking import Place

SHORT, SEED = 15, "20261121"
MANY = 500


@pytest.fixture
def walking(
    transactional_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Place]:
    """A cluster behind the fault proxy, a folder for repositories, short patience, and brakes for a small town."""
    monkeypatch.setattr(settings.ENV, "kubeconfig_dir", tmp_path)
    monkeypatch.setattr(settings.ENV, "git_local_dir", tmp_path)
    monkeypatch.setattr(connector, "TIMEOUT", (1.0, 0.15))
    monkeypatch.setattr(delivery, "PATIENCE", 0.3)
    # The jitter of retries is drawn, too, so that a seed gives the same walk again.
    monkeypatch.setattr(SystemRandom, "uniform", Random(SEED).uniform)
    monkeypatch.setattr(brake, "LEAST", 1)
    monkeypatch.setattr(ending, "FEWEST", 1)
    monkeypatch.setattr(leaving_plan, "LEAST_BRAKE", 1)
    # Namespaces go when the walk's clock goes on, not by the machine's.
    monkeypatch.setattr(controllers, "TERMINATION_DELAY", 10_000.0)
    # Thousands of faults would be told of; what matters is in the story.
    logging.disable(logging.CRITICAL)
    broker = Broker.from_url(settings.CELERY["broker_url"])
    with served() as kubernetes, proxied(kubernetes.port) as proxy:
        place = Place(kubernetes, proxy, tmp_path, broker, kubernetes.snapshot())
        yield place
    broker.close()
    logging.disable(logging.NOTSET)


def say(words: str) -> None:
    """Tell whoever waits for a long walk how far it is."""
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def walked(place: Place, *, iterations: int, seed: str, first: int = 0) -> Tally:
    """Walk so many times; raises AssertionError with seed and story at the first broken promise."""
    started, tally, steps = time.monotonic(), Tally(), 0
    for number in range(first, first + iterations):
        walk, wrong = iteration(place, f"{seed}:{number}")
        tally.add(walk.tally)
        steps += len(walk.said)
        story = "\n".join(walk.said)
        assert not wrong, (
            f"SEED={seed} FIRST={number} ITERATIONS=1 make soak\n{story}\n\n"
            + "\n".join(wrong)
        )
        if (number + 1 - first) % 50 == 0:
            say(
                f"{number + 1 - first} iterations, {steps} steps, {time.monotonic() - started:.0f} s, 0 violations"
            )
    return tally


def figures(tally: Tally) -> str:
    """How often what happened, the most frequent first."""
    names = ("Done", "Refused", "Ended by a fault", "Faults that struck")
    lines = []
    for name, counter in zip(names, tally.all, strict=True):
        each = ", ".join(f"{what} {number}" for what, number in counter.most_common())
        lines.append(f"{name} ({counter.total()}): {each}")
    return "\n".join(lines)


@pytest.mark.slow
def test_a_short_walk_of_operations_and_faults_breaks_no_promise(
    walking: Place,
) -> None:
    tally = walked(walking, iterations=SHORT, seed=SEED)
    assert tally.done
    assert tally.struck


@pytest.mark.long
@pytest.mark.timeout(0)
def test_a_long_walk_of_operations_and_faults_breaks_no_promise(walking: Place) -> None:
    seed = os.environ.get("SEED") or str(SystemRandom().randrange(10**9))
    iterations, first = (
        int(os.environ.get("ITERATIONS") or 1000),
        int(os.environ.get("FIRST") or 0),
    )
    say(f"\nSEED={seed}")
    gc.freeze()
    gc.set_threshold(50_000)
    started = time.monotonic()
    tally = walked(walking, iterations=iterations, seed=seed, first=first)
    say(
        f"{iterations} iterations from {first} of seed {seed} in {time.monotonic() - started:.0f} s, 0 violations"
    )
    say(figures(tally))
    missing = (
        DONE - set(tally.done),
        STRUCK - {name for name, times in tally.struck.items() if times},
    )
    assert iterations < MANY or missing == (set(), set()), (
        "every operation and every fault happened"
    )
