"""Where platform leads maintain the profiles of notebook servers."""
