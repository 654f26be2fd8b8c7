"""How Python's collector works in a process that serves for long: seldom, and never through what stays."""

import gc

# New objects until a collection, and such collections until an older generation is looked through. A list of fifty
# requests makes some ten thousand objects, and Python's own 700 would interrupt it as often as a dozen times.
THRESHOLDS = 20_000, 20, 50


def settle() -> None:
    """Leave alone what is loaded by now; called once, when the application is whole."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
