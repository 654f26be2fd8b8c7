"""The broker of a machine without Redis: a folder of messages."""

from pathlib import Path
from threading import Thread

from kombu.connection import Connection

from portal import folder_broker

MESSAGES = 400


def broker(folder: Path) -> Connection:
    """A connection to a folder; the reader looks as often as it can."""
    options = {
        "data_folder_in": str(folder),
        "data_folder_out": str(folder),
        "control_folder": str(folder / "control"),
        "store_processed": False,
        "polling_interval": 0.0001,
    }
    return Connection("folder://", transport_options=options)  # type: ignore[no-untyped-call]


def write(folder: Path) -> None:
    with broker(folder) as connection:
        queue = connection.SimpleQueue("celery")
        for number in range(MESSAGES):
            queue.put({"number": number})
        queue.close()


def test_a_reader_meets_every_message_whole(tmp_path: Path) -> None:
    folder_broker.register()
    writer = Thread(target=write, args=(tmp_path,))
    found = set()

    with broker(tmp_path) as connection:
        queue = connection.SimpleQueue("celery")
        writer.start()
        for _ in range(MESSAGES):
            message = queue.get(timeout=20)
            found.add(message.payload["number"])
            message.ack()
        queue.close()
    writer.join()

    assert found == set(range(MESSAGES))
    assert list(tmp_path.glob("*.part")) == []
