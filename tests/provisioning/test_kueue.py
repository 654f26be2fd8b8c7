"""A Kueue that would store something else than we write is refused in words."""

import pytest

from connectors.errors import PermanentError
from provisioning.clusters import kueue, releases


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("registry.k8s.io/kueue/kueue:v0.19.2", "v0.19.2"),
        ("registry.example.com:5000/kueue:v0.16.0@sha256:abc", "v0.16.0"),
        ("registry.example.com:5000/kueue", ""),
        ("kueue:latest", ""),
        ("kueue@sha256:abc", ""),
        ("", ""),
    ],
)
def test_a_release_is_read_from_the_image(image: str, version: str) -> None:
    assert releases.version_of(image) == version


@pytest.mark.parametrize(
    "version",
    ["v0.16.0", "v0.19.2", "0.16.0-rc.1", "v1.0.0", "", "0.16 or newer", "main"],
)
def test_what_is_new_enough_or_unknown_passes(version: str) -> None:
    kueue.check(version)


@pytest.mark.parametrize("version", ["v0.15.4", "v0.9.0", "0.2"])
def test_what_is_too_old_is_refused_with_what_is_needed(version: str) -> None:
    with pytest.raises(
        PermanentError,
        match=f"Kueue {version} is too old: the portal needs 0.16 or newer.",
    ) as caught:
        kueue.check(version)
    assert caught.value.code == "kueue_too_old"
