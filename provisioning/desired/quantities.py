"""Numbers as Kubernetes quantities in the form its API server writes; another form would look like drift. Pure."""

import re
from fractions import Fraction

CPU, MEMORY = "cpu", "memory"
THOUSANDS = {"": 1, "k": 1000, "M": 1000**2, "G": 1000**3}
BINARY = {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)}
DECIMAL = {letter: 1000**power for power, letter in enumerate("kMGTPE", 1)}
SUFFIXES = {"": 1, "m": Fraction(1, 1000), **DECIMAL, **BINARY}
AMOUNT = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,9})?)(m|[KMGTPE]i|[kMGTPE])?", re.ASCII)
COUNT = re.compile(r"([0-9]{1,12})([kMG]?)", re.ASCII)


def gibibytes(number: int) -> str:
    """GiB in canonical form: 1024 is `1Ti`."""
    return _canonical(number, 1024, ["Gi", "Ti", "Pi", "Ei"])


def count(number: int) -> str:
    """A number in canonical form: 1500 stays, but 2000 is `2k`."""
    return _canonical(number, 1000, ["", "k", "M", "G"])


def _canonical(number: int, base: int, suffixes: list[str]) -> str:
    if not number:
        return "0"
    while number % base == 0 and len(suffixes) > 1:
        number //= base
        suffixes = suffixes[1:]
    return f"{number}{suffixes[0]}"


def counted(text: object) -> int:
    """A whole number from its canonical form: `2k` is 2000. 0 for any other notation: nobody reserves part of a GPU."""
    found = COUNT.fullmatch(str(text))
    return int(found[1]) * THOUSANDS[found[2]] if found else 0


def amount(text: object) -> Fraction | None:
    """What a quantity amounts to, in any notation but exponents: `500m` is a half. None for anything else."""
    found = AMOUNT.fullmatch(str(text))
    return Fraction(found[1]) * SUFFIXES[found[2] or ""] if found else None


def exact(text: object) -> Fraction:
    """An amount of CPUs, or of bytes; 0 for what is none."""
    return amount(text) or Fraction(0)


def sized(resource: str, text: object) -> Fraction:
    """The same in the units in which the portal counts: CPUs, and GiB of memory."""
    return exact(text) / (BINARY["Gi"] if resource == MEMORY else 1)
