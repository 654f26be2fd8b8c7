"""What stands between a browser or program and every page: bodies, refusals, caching, forms that are kept."""
