"""Templates of runs as the platform team keeps them: versions that are never changed, beside those of the product."""
