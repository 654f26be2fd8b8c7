"""What allocations are used for: how much, and what still runs when they have ended."""
