"""Access tokens for the API."""
