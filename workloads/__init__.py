"""What runs on the clusters: training runs, everything else of a team, and why something waits."""
