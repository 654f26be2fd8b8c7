"""Numbers and sizes are written as the API server writes them, or they would look like drift for ever."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioning.desired.manifests import count, gibibytes
from provisioning.desired.quantities import counted
from sandbox.kubernetes import quantities


@pytest.mark.parametrize(
    ("gib", "text"),
    [
        (0, "0"),
        (1, "1Gi"),
        (1000, "1000Gi"),
        (1024, "1Ti"),
        (1536, "1536Gi"),
        (2048, "2Ti"),
        (2**20, "1Pi"),
        (2**30, "1Ei"),
    ],
)
def test_a_size_is_written_as_the_api_server_would_write_it(
    gib: int, text: str
) -> None:
    assert gibibytes(gib) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (1, "1"),
        (999, "999"),
        (1000, "1k"),
        (1500, "1500"),
        (57_000, "57k"),
        (10**6, "1M"),
    ],
)
def test_a_number_is_written_as_the_api_server_would_write_it(
    number: int, text: str
) -> None:
    assert count(number) == text


@given(
    st.integers(0, 10**9)
    | st.integers(0, 10**6).map(lambda thousands: thousands * 1000)
)
def test_any_number_is_in_its_canonical_form(number: int) -> None:
    assert quantities.canonical(str(number)) == count(number)
    assert counted(count(number)) == number


@pytest.mark.parametrize(
    "text", [None, "", "-1", "1.5", "500m", "1Ki", "x", "1 k", "٣"]
)
def test_what_is_no_whole_number_counts_as_none(text: object) -> None:
    assert counted(text) == 0


@given(
    st.integers(0, 2**31)
    | st.integers(0, 2**21).map(lambda tebibytes: tebibytes * 1024)
)
def test_any_size_is_in_its_canonical_form(gib: int) -> None:
    assert quantities.canonical(f"{gib}Gi") == gibibytes(gib)
