"""Numbers as Kubernetes quantities in the form its API server writes; another form would look like drift. Pure."""

CPU, MEMORY = "cpu", "memory"


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
