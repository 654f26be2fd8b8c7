"""How Python's collector works in a process that serves for long: seldom, and never through what stays."""

import gc

# New objects until a collection, and such collections until an older generation is looked through. Python's own 700
# make nearly three collections for each list of fifty requests in the API; these make one for ten lists.
THRESHOLDS = 20_000, 20, 50


def settle() -> None:
    """Leave alone what is loaded by now; called once, when the application is whole."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
