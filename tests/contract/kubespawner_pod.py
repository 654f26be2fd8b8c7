"""Prints the pod that KubeSpawner makes from a profile, under the configuration that deploy/jupyterhub ships.

Run by the hub's own Python with {"profile", "options", "server", "user"} on its standard input; see test_notebooks.py.
"""

import asyncio
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kubernetes_asyncio.client import ApiClient
from kubespawner import KubeSpawner
from quartermaster_jupyterhub import PortalSpawner
from traitlets.config import Config

SHIPPED = Path(__file__).parents[2] / "deploy" / "jupyterhub" / "jupyterhub_config.py"


async def main() -> None:
    """Read what is asked for, write the manifest."""
    asked = json.load(sys.stdin)
    user = SimpleNamespace(name=asked["user"], id=1, url="/")
    # KubeSpawner's own tests do without a hub, too.
    spawner = PortalSpawner(
        config=shipped(),
        user=user,
        orm_spawner=SimpleNamespace(name=asked["server"], server=None),
        _mock=True,
    )
    spawner.profile_list = [asked["profile"]]
    spawner.user_options = {"profile": asked["profile"]["slug"], **asked["options"]}
    # The portal has been asked already: the profile is its answer.
    await KubeSpawner.load_user_options(spawner)
    json.dump(
        ApiClient().sanitize_for_serialization(await spawner.get_pod_manifest()),
        sys.stdout,
    )


def shipped() -> Config:
    """The configuration as a hub reads it."""
    config = Config()
    known: dict[str, Any] = {"get_config": lambda: config}
    exec(compile(SHIPPED.read_text(encoding="utf-8"), SHIPPED, "exec"), known)
    return config


asyncio.run(main())
