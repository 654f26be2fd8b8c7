"""The quota chain as a page and over the API: every limit behind a kind of GPU, and the one that stops an ask."""
