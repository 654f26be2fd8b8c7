"""Kubernetes quantities: parsed, written and added up the way the API server does it."""

import re
from dataclasses import dataclass
from functools import reduce
from typing import Any

WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
WRONG_SUFFIX = "unable to parse quantity's suffix"

DECIMAL, BINARY, EXPONENT = "DecimalSI", "BinarySI", "DecimalExponent"
DECIMAL_SUFFIXES = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
BINARY_SUFFIXES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
SUFFIX_OF_EXPONENT = {exponent: suffix for suffix, exponent in DECIMAL_SUFFIXES.items()}
SUFFIX_OF_SHIFT = {
    0: "",
    **{shift: suffix for suffix, shift in BINARY_SUFFIXES.items()},
}
NANO = 10**9
MILLI = 10**6
LARGEST_BINARY = (2**63 - 1) * NANO
# The server keeps what was written only when it can be read in one go: 18 decimal digits, or 15 in binary.
FAST_DIGITS, FAST_BINARY_DIGITS = 18, 15
# Not the server's limit: keeps an absurd exponent from taking all memory.
LARGEST_EXPONENT = 10_000

_PARTS = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?([eEinumkKMGTP]*[-+]?\d*)", re.ASCII)
_EXPONENT = re.compile(r"[eE]([-+]?\d+)", re.ASCII)


class QuantityError(ValueError):
    """A value that is no quantity; its text is the message of the API server."""


@dataclass(frozen=True)
class Quantity:
    """An exact amount in billionths, and how it is written; equality is of both, use compare for amounts."""

    nanos: int
    format: str
    text: str

    def __str__(self) -> str:
        return self.text


def parse(value: Any) -> Quantity:
    """Read a quantity from a JSON value; None is 0, numbers are taken as written. Raises QuantityError."""
    if value is None:
        return ZERO
    if isinstance(value, (bool, dict, list)):
        raise QuantityError(WRONG_FORMAT)
    text = str(value).strip()
    match = _PARTS.fullmatch(text)
    if not text or match is None:
        raise QuantityError(WRONG_FORMAT)
    sign, whole, fraction, suffix = match.groups(default="")
    scale, shift, form = _suffix(suffix)
    # Leading zeros are dropped before the server decides whether it keeps the text as written.
    whole = whole.lstrip("0") or "0"
    nanos, form = _amount(int(whole + fraction), scale - len(fraction), shift, form)
    nanos = -nanos if sign == "-" else nanos
    if text == "0" or _kept_as_written(whole, fraction, scale, shift, form):
        return Quantity(nanos, form, text)
    return Quantity(nanos, form, _canonical(nanos, form))


def _suffix(suffix: str) -> tuple[int, int, str]:
    """The power of ten, the power of two and the format that a suffix stands for."""
    if suffix in DECIMAL_SUFFIXES:
        return DECIMAL_SUFFIXES[suffix], 0, DECIMAL
    if suffix in BINARY_SUFFIXES:
        return 0, BINARY_SUFFIXES[suffix], BINARY
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None or abs(int(exponent[1])) > LARGEST_EXPONENT:
        raise QuantityError(WRONG_SUFFIX)
    return int(exponent[1]), 0, EXPONENT


def _amount(digits: int, scale: int, shift: int, form: str) -> tuple[int, str]:
    """The amount in billionths, rounded up, and the format it takes."""
    power = scale + 9
    value = digits << shift
    nanos = value * 10**power if power >= 0 else -(-value // 10**-power)
    if form == BINARY:
        nanos = min(nanos, LARGEST_BINARY)
        form = DECIMAL if 0 < nanos < NANO else BINARY
    return nanos, form


def _kept_as_written(
    whole: str, fraction: str, scale: int, shift: int, form: str
) -> bool:
    shifted = whole + fraction
    if form == BINARY:
        fast = not fraction and len(whole) + shift * 3 // 10 + 1 <= FAST_BINARY_DIGITS
        return fast and int(whole) & 7 != 0
    scale -= len(fraction)
    fast = len(shifted) <= FAST_DIGITS and scale >= -9 and not shift
    return fast and scale % 3 == 0 and not shifted.endswith("000") and shifted[0] != "0"


def _canonical(nanos: int, form: str) -> str:
    if nanos == 0:
        return "0"
    if form == BINARY and abs(nanos) >= 1024 * NANO and nanos % NANO == 0:
        return _binary(nanos // NANO)
    return _decimal(nanos, EXPONENT if form == EXPONENT else DECIMAL)


def _binary(value: int) -> str:
    shift = 0
    while value % 1024 == 0 and shift < 60:
        value, shift = value // 1024, shift + 10
    return f"{value}{SUFFIX_OF_SHIFT[shift]}"


def _decimal(nanos: int, form: str) -> str:
    value, exponent = nanos, -9
    while value % 1000 == 0:
        value, exponent = value // 1000, exponent + 3
    if form == DECIMAL and exponent in SUFFIX_OF_EXPONENT:
        return f"{value}{SUFFIX_OF_EXPONENT[exponent]}"
    return f"{value}e{exponent}" if exponent else str(value)


ZERO = Quantity(0, DECIMAL, "0")


def canonical(value: Any) -> str:
    """How the server stores a quantity of a body: trimmed, and rewritten unless it was nearly canonical."""
    return parse(value).text


def stored(value: Any) -> str:
    """How the server stores a quantity of a resource list, where amounts are rounded up to thousandths."""
    quantity = parse(value)
    if quantity.nanos % MILLI == 0:
        return quantity.text
    return _canonical(-(-quantity.nanos // MILLI) * MILLI, quantity.format)


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1 as the left amount is smaller than, equal to or larger than the right."""
    first, second = parse(left).nanos, parse(right).nanos
    return (first > second) - (first < second)


def _plus(left: Quantity, right: Quantity) -> Quantity:
    form = right.format if left.nanos == 0 else left.format
    nanos = left.nanos + right.nanos
    return Quantity(nanos, form, _canonical(nanos, form))


def add(*values: Any) -> str:
    """The sum in canonical form, written in the format of the first amount that is not zero."""
    return reduce(_plus, (parse(value) for value in values), ZERO).text


def subtract(left: Any, right: Any) -> str:
    """The difference in canonical form; it may be negative."""
    second = parse(right)
    return _plus(parse(left), Quantity(-second.nanos, second.format, "")).text


def largest(*values: Any) -> str:
    """The largest amount, in canonical form; 0 when none is given."""
    return add(
        max(
            (parse(value) for value in values),
            key=lambda quantity: quantity.nanos,
            default=ZERO,
        )
    )


def multiply(value: Any, times: int) -> str:
    """The amount taken so many times, in canonical form."""
    quantity = parse(value)
    return _canonical(quantity.nanos * times, quantity.format)


def written(nanos: int, like: Any) -> str:
    """An amount in billionths as a quantity, in the format of another one."""
    return _canonical(nanos, parse(like).format)


def is_zero(value: Any) -> bool:
    """Whether the amount is 0."""
    return parse(value).nanos == 0


def is_whole(value: Any) -> bool:
    """Whether the amount is an integer."""
    return parse(value).nanos % NANO == 0
