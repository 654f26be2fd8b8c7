"""Numbers as Kubernetes quantities in the form its API server writes; another form would look like drift. Pure."""

import re

CPU, MEMORY = "cpu", "memory"
THOUSANDS = {"": 1, "k": 1000, "M": 1000**2, "G": 1000**3}
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
