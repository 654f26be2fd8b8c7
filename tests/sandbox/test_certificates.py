"""Certificates are made once, and anew when they are about to end."""

import stat
from datetime import timedelta
from pathlib import Path

import pytest

from sandbox import certificates


def test_they_are_kept(tmp_path: Path) -> None:
    first = certificates.ensure(tmp_path)
    before = first.chain.read_bytes()
    assert certificates.ensure(tmp_path).chain.read_bytes() == before
    assert stat.S_IMODE(first.key.stat().st_mode) == 0o600


def test_they_are_made_anew_when_one_is_missing(tmp_path: Path) -> None:
    first = certificates.ensure(tmp_path)
    before = first.chain.read_bytes()
    first.key.unlink()
    assert certificates.ensure(tmp_path).chain.read_bytes() != before


def test_they_are_made_anew_before_their_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "LIFETIME", timedelta(days=1))
    before = certificates.ensure(tmp_path).chain.read_bytes()
    monkeypatch.undo()
    assert certificates.ensure(tmp_path).chain.read_bytes() != before
