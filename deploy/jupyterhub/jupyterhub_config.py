"""What a JupyterHub needs to work with Quartermaster; the hub loads it beside its own configuration.

QUARTERMASTER_URL is the portal's address, QUARTERMASTER_KEY_FILE names a file with the key of this hub, and
QUARTERMASTER_TOKEN_FILE one with the token by which the portal calls this hub.
"""

import os
from pathlib import Path

c = get_config()  # noqa: F821 - the hub gives it

c.JupyterHub.spawner_class = "quartermaster_jupyterhub.PortalSpawner"
c.JupyterHub.allow_named_servers = True
# A start is answered at once: it may wait in a queue, and the portal says for what.
c.JupyterHub.tornado_settings.update({"slow_spawn_timeout": 0})
# Servers that wait in a queue count as starting; a limit would keep everybody from starting one.
c.JupyterHub.concurrent_spawn_limit = 0
# Servers go on while the hub restarts.
c.JupyterHub.cleanup_servers = False

c.JupyterHub.services.append(
    {
        "name": "quartermaster",
        "api_token": Path(os.environ["QUARTERMASTER_TOKEN_FILE"])
        .read_text(encoding="utf-8")
        .strip(),
    }
)
c.JupyterHub.load_roles.append(
    {
        "name": "quartermaster",
        "services": ["quartermaster"],
        "scopes": [
            "read:hub",  # the version, by which the connection is checked
            "list:users",  # whose servers run
            "admin:users",  # make a person known who never opened the hub; JupyterHub has no smaller scope for that
            "servers",  # start, stop and watch
            "admin:server_state",  # the name of a server's pod
        ],
    }
)

# The portal joins people by the object id that Entra ID gives them; names and addresses change.
c.GenericOAuthenticator.username_claim = "oid"
c.AzureAdOAuthenticator.username_claim = "oid"

# Pods are as restricted as the teams' namespaces ask for.
c.KubeSpawner.uid = 1000
c.KubeSpawner.gid = 100
c.KubeSpawner.fs_gid = 100
c.KubeSpawner.container_security_context = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
# Volumes come with the profile, from the team's own claims.
c.KubeSpawner.storage_pvc_ensure = False
