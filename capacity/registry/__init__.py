"""Access of teams to the container registry: granted to their Entra groups, and withdrawn when they leave."""
