"""What a demo left is taken up again only where its database has what the portal of now reads."""

from pathlib import Path

import pytest

from scripts.demo_data import note_migrations, put_aside


@pytest.fixture
def migrations(tmp_path: Path) -> list[Path]:
    """Those of two applications."""
    found = [
        tmp_path / app / "migrations" / "0001_initial.py"
        for app in ("accounts", "fleet")
    ]
    for path in found:
        path.parent.mkdir(parents=True)
        path.write_text("operations = []")
    return found


@pytest.fixture
def data(tmp_path: Path, migrations: list[Path]) -> Path:
    """The folder of a demo that ran before."""
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / "portal.sqlite3").write_text("Ada's team")
    note_migrations(folder, migrations)
    return folder


def test_data_of_the_same_version_stays_and_a_new_migration_is_applied_on_top(
    data: Path, migrations: list[Path]
) -> None:
    added = migrations[0].with_name("0002_more.py")
    added.write_text("operations = [1]")
    assert put_aside(data, migrations) is None
    assert put_aside(data, [*migrations, added]) is None
    assert (data / "portal.sqlite3").exists()


@pytest.mark.parametrize("change", ["edited", "gone", "not noted", "not readable"])
def test_data_that_this_version_cannot_read_is_put_aside_and_kept(
    data: Path, migrations: list[Path], change: str
) -> None:
    if change == "edited":
        migrations[1].write_text("operations = [2]")
    elif change == "gone":
        migrations.pop()
    elif change == "not noted":
        (data / "migrations.json").unlink()
    else:
        (data / "migrations.json").write_text("{")
    aside = put_aside(data, migrations)
    assert aside == data.with_name("demo-1")
    assert not data.exists()
    assert (aside / "portal.sqlite3").read_text() == "Ada's team"


def test_what_was_put_aside_before_stays(data: Path, migrations: list[Path]) -> None:
    earlier = data.with_name("demo-1")
    earlier.mkdir()
    (data / "migrations.json").unlink()
    assert put_aside(data, migrations) == data.with_name("demo-2")
    assert earlier.exists()


def test_the_first_demo_has_nothing_to_put_aside(
    tmp_path: Path, migrations: list[Path]
) -> None:
    assert put_aside(tmp_path / "demo", migrations) is None
