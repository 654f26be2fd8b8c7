"""The configuration of the sandbox's hub, which the hub reads: what deploy/jupyterhub ships, and where things are here.

SANDBOX_HUB names the file that `sandbox.jupyterhub.processes` writes.
"""

import json
import os
from pathlib import Path

here = json.loads(Path(os.environ["SANDBOX_HUB"]).read_text(encoding="utf-8"))
c = get_config()  # noqa: F821 - the hub gives it
load_subconfig(here["shipped"])  # noqa: F821

c.JupyterHub.bind_url = here["browser"]
c.JupyterHub.hub_bind_url = c.JupyterHub.hub_connect_url = here["hub"]
c.JupyterHub.db_url = f"sqlite:///{here['data']}/hub.sqlite3"
c.JupyterHub.cookie_secret_file = f"{here['data']}/cookie-secret"
# The proxy is a process of its own, as in Zero to JupyterHub: open pages live through a restart of the hub.
c.ConfigurableHTTPProxy.should_start = False
c.ConfigurableHTTPProxy.api_url = here["proxy_api"]
c.ConfigurableHTTPProxy.auth_token = here["proxy_token"]

c.KubeSpawner.namespace = here["namespace"]
# What Zero to JupyterHub has on every pod of a notebook.
c.KubeSpawner.tolerations = [
    {
        "key": "hub.jupyter.org/dedicated",
        "operator": "Equal",
        "value": "user",
        "effect": "NoSchedule",
    }
]
# Seconds between two looks at each server.
c.KubeSpawner.poll_interval = 5

c.JupyterHub.authenticator_class = "generic-oauth"
c.GenericOAuthenticator.client_id = here["entra"]["client_id"]
c.GenericOAuthenticator.client_secret = here["entra"]["client_secret"]
c.GenericOAuthenticator.authorize_url = (
    f"{here['entra']['sign_in']}/{here['entra']['tenant_id']}/oauth2/v2.0/authorize"
)
c.GenericOAuthenticator.token_url = f"{here['entra']['authority']}/oauth2/v2.0/token"
c.GenericOAuthenticator.oauth_callback_url = f"{here['browser']}/hub/oauth_callback"
c.GenericOAuthenticator.userdata_from_id_token = True
c.GenericOAuthenticator.scope = ["openid", "profile"]
c.GenericOAuthenticator.http_request_kwargs = {"ca_certs": here["ca"]}
c.GenericOAuthenticator.allow_all = True
# Kept encrypted: from it the hub tells the portal the object id of who signed in.
c.GenericOAuthenticator.enable_auth_state = True
c.CryptKeeper.keys = [here["state_key"]]
