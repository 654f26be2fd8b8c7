"""The package for hubs: its own tests in the hub's environment, and that pip makes a wheel of it."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sandbox.jupyterhub.environment import PYTHON, ROOT, install

PACKAGE = ROOT / "integrations" / "jupyterhub"


@pytest.mark.slow  # installs the hub where it is not there yet
def test_its_own_tests_pass_where_jupyterhub_is() -> None:
    install()
    done = subprocess.run(
        [PYTHON, "-m", "unittest", "discover", "-s", "tests"],
        cwd=PACKAGE,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(PACKAGE),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "OK" in done.stderr


@pytest.mark.slow
def test_pip_makes_a_wheel_of_it_that_brings_nothing_else(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        str(tmp_path),
    ]
    subprocess.run([*command, str(_copy(tmp_path))], check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        metadata = opened.read(
            next(name for name in names if name.endswith("METADATA"))
        ).decode()
    assert "quartermaster_jupyterhub/spawner.py" in names
    required = [
        line
        for line in metadata.splitlines()
        if line.startswith("Requires-Dist") and "extra" not in line
    ]
    assert required == []


def _copy(folder: Path) -> Path:
    """A copy to build in: setuptools writes beside its sources."""

    return Path(shutil.copytree(PACKAGE, folder / "source"))
