"""A real JupyterHub with KubeSpawner and its proxy beside one sandbox cluster, installed by `scripts/hub.sh`."""
