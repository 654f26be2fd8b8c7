"""A development container of a profile: the same image, as VS Code opens it on a machine of one's own. Pure.

https://containers.dev/implementors/json_reference/
"""

import json
from typing import Any

from notebooks.profiles.document import Document, Volume, usual


def devcontainer(document: Document) -> str:
    """The `devcontainer.json` of a profile as it is where nobody chose anything; its volumes are Docker's own."""
    gpus, cpus, memory = (usual(document, name) for name in ("gpus", "cpus", "memory"))
    needs: dict[str, Any] = {
        **({"cpus": max(1, int(cpus))} if cpus else {}),
        **({"memory": f"{memory}gb"} if memory else {}),
        **({"gpu": True} if gpus else {}),
    }
    own = document.devcontainer
    found: dict[str, Any] = {
        "name": document.title,
        "image": usual(document, "image"),
        "features": {name: dict(one) for name, one in own.features.items()},
        "runArgs": ["--gpus", str(gpus)] if gpus else [],
        "hostRequirements": needs,
        "containerEnv": dict(document.variables),
        "mounts": [_mount(one) for one in document.volumes],
        "postCreateCommand": own.post_create,
        "customizations": {"vscode": {"extensions": list(own.extensions)}}
        if own.extensions
        else {},
    }
    filled = {name: value for name, value in found.items() if value}
    return json.dumps(filled, indent=2, ensure_ascii=False) + "\n"


def _mount(one: Volume) -> str:
    return f"source={one.name},target={one.path},type=volume{',readonly' if one.read_only else ''}"
