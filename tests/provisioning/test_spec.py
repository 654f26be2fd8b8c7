"""The contract between what teams hold and what stands on a cluster."""

import json

import pytest
from hypothesis import given

from provisioning.desired.spec import LARGEST_GPUS, FlavorQuota, SpecRefused, TenancySpec
from tests.provisioning.specs import SAMPLE, specs


@given(specs())
def test_a_spec_survives_its_storage(spec: TenancySpec) -> None:
    stored = json.loads(json.dumps(spec.to_json()))
    assert TenancySpec.from_json(stored) == spec
    assert TenancySpec.from_json(stored).to_json() == stored == spec.to_json()


@pytest.mark.parametrize(
    ("gpus", "borrow"), [(-1, 0), (LARGEST_GPUS + 1, 0), (10**20, 0), (2, -1), (2, 3), (0, 1)]
)
def test_it_refuses_what_is_not_a_quota(gpus: int, borrow: int) -> None:
    with pytest.raises(SpecRefused, match=f"{gpus} GPUs with {borrow} to borrow is not a quota"):
        FlavorQuota(name="a100", gpus=gpus, borrow=borrow)


def test_a_stored_spec_that_is_no_quota_is_refused_when_it_is_read() -> None:
    stored = SAMPLE.to_json()
    stored["flavors"][0]["gpus"] = -2
    with pytest.raises(SpecRefused):
        TenancySpec.from_json(stored)


def test_the_largest_quota_is_one() -> None:
    assert FlavorQuota(name="a100", gpus=LARGEST_GPUS, borrow=LARGEST_GPUS).gpus == LARGEST_GPUS


def test_gpus_are_added_over_flavors() -> None:
    assert SAMPLE.gpus() == 2
