"""The environment that scripts/venv.sh makes: exactly what is pinned, whatever has been published since."""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]
ROOT = Path(__file__).parents[1]


def wheel(folder: Path, name: str, version: str, *lines: str) -> str:
    """Write a wheel without modules of that name and version, and return its line in a file of pinned packages."""
    path, info = (
        folder / f"{name}-{version}-py3-none-any.whl",
        f"{name}-{version}.dist-info",
    )
    metadata = "\n".join(
        ("Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *lines, "")
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{info}/METADATA", metadata)
        archive.writestr(
            f"{info}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{info}/RECORD", "")
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "wheels").mkdir()
    (tmp_path / "scripts").mkdir()
    for name in ("venv.sh", "python.sh"):
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")
    (tmp_path / "requirements" / "sandbox.txt").write_text("")
    return tmp_path


def install(project: Path, *pinned: str) -> "subprocess.CompletedProcess[str]":
    (project / "requirements" / "dev.txt").write_text("".join(pinned))
    environment = {
        **os.environ,
        "PYTHON": sys.executable,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(project / "wheels"),
    }
    command = [str(project / "scripts" / "venv.sh"), "dev"]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )


def test_a_newer_release_of_a_package_that_another_wants_with_an_extra_changes_nothing(
    project: Path,
) -> None:
    pinned = wheel(project / "wheels", "measure", "1.0", "Provides-Extra: toml")
    wheel(project / "wheels", "measure", "1.1", "Provides-Extra: toml")
    runner = wheel(
        project / "wheels", "runner", "2.0", "Requires-Dist: measure[toml]>=1.0"
    )
    ended = install(project, pinned, runner)
    assert ended.returncode == 0, ended.stderr
    site = next((project / ".venv").glob("lib/python*/site-packages"))
    assert (site / "measure-1.0.dist-info").is_dir()


def test_a_package_that_is_wanted_and_not_pinned_is_named(project: Path) -> None:
    wheel(project / "wheels", "measure", "1.0")
    ended = install(
        project,
        wheel(project / "wheels", "runner", "2.0", "Requires-Dist: measure>=1.0"),
    )
    assert ended.returncode != 0
    assert "runner 2.0 requires measure, which is not installed" in ended.stderr


def interpreter(path: Path, *, version: str = "3 11", is_quick: bool = True) -> Path:
    """What answers the questions of scripts/python.sh as a Python of that version would."""
    path.write_text(
        f"""#!/bin/bash
case "$2" in
    *--enable-optimizations*) exit {0 if is_quick else 1} ;;
    *ensurepip*) echo {version} ;;
    *version_info*) exit {0 if version >= "3 11" else 1} ;;
esac
"""
    )
    path.chmod(0o755)
    return path


def chosen(
    folder: Path, system: Path, **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run scripts/python.sh where `system` is the system's Python and whatever is in the folder comes first."""
    script = (
        (ROOT / "scripts" / "python.sh")
        .read_text()
        .replace("/usr/bin/python3", str(system))
    )
    path = f"{folder}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", script],
        env={"PATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("is_quick", "version", "is_the_systems"),
    [(True, "3 11", False), (False, "3 11", True), (False, "3 12", False)],
)
def test_a_python_without_optimizations_gives_way_to_the_systems_of_its_version(
    tmp_path: Path, is_quick: bool, version: str, is_the_systems: bool
) -> None:
    interpreter(tmp_path / "python3", is_quick=is_quick)
    system = interpreter(tmp_path / "system", version=version)
    assert (
        chosen(tmp_path, system).stdout
        == f"{system if is_the_systems else 'python3'}\n"
    )


def test_the_python_that_was_named_is_taken_whatever_it_is(tmp_path: Path) -> None:
    named = interpreter(tmp_path / "python3", is_quick=False)
    assert (
        chosen(tmp_path, interpreter(tmp_path / "system"), PYTHON=str(named)).stdout
        == f"{named}\n"
    )


def test_a_python_that_is_too_old_is_refused_with_what_to_do(tmp_path: Path) -> None:
    interpreter(tmp_path / "python3", version="3 10")
    ended = chosen(tmp_path, tmp_path / "missing")
    assert ended.returncode == 1
    assert "needs Python 3.11 or newer. Set PYTHON=" in ended.stderr
