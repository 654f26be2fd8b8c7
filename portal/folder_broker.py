"""A broker that needs no server: kombu's folder of messages, in which a message appears whole or not at all."""

import json
import uuid
from pathlib import Path
from time import monotonic
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, filesystem


class Channel(filesystem.Channel):
    """Writes a message under another name and renames it: with kombu's own, a reader may take a file still empty."""

    def _put(self, queue: str, payload: dict[str, Any], **kwargs: Any) -> None:  # type: ignore[override]
        folder = Path(self.data_folder_out)
        name = f"{round(monotonic() * 1000)}_{uuid.uuid4()}"
        part = folder / f"{name}.part"
        part.write_text(json.dumps(payload))
        part.replace(folder / f"{name}.{queue}.msg")


class Transport(filesystem.Transport):
    """Kombu's, with this channel."""

    Channel = Channel


def register() -> None:
    """Make `folder://` an address that kombu knows."""
    TRANSPORT_ALIASES["folder"] = "portal.folder_broker:Transport"
