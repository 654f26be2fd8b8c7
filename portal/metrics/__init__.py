"""How the portal itself is doing, as the Prometheus of whoever operates it reads it."""
