"""A team's share of a cluster, and how far apart it is from others."""
