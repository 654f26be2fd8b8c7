"""Azure's list prices beside the fleet's own: what machines cost now and cost before, and how reading them went."""
