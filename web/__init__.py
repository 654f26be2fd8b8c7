"""What every page and endpoint needs of HTTP: strict input, refusals, pages of lists, limits of rate."""
