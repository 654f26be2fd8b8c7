"""A JupyterHub whose profiles come from Quartermaster: `PortalSpawner`, or `profiles` for another KubeSpawner."""

from quartermaster_jupyterhub.asking import Portal, profiles
from quartermaster_jupyterhub.spawner import PortalMixin, PortalSpawner

__all__ = ["Portal", "PortalMixin", "PortalSpawner", "profiles"]
