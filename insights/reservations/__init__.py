"""Capacity reservations as pages and over the API: how each stands, what it costs, who uses it, what is orphaned."""
