"""Django's PostgreSQL with a pool that gets over a server's restart at once."""
