"""A pickle that shows when somebody has read it."""

import os
from pathlib import Path
from typing import Any


class Planted:
    """Unpickling it makes a folder."""

    def __init__(self, folder: Path) -> None:
        """`folder` does not exist yet."""
        self.folder = folder

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.folder),)
