"""JupyterHubs: the hub of each cluster, who its users are, and what it may start for them."""
