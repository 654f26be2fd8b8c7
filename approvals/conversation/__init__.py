"""Questions, answers and comments about a request."""
