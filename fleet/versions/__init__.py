"""Which versions the nodes of each kind of GPU run, and in what they differ from cluster to cluster."""
