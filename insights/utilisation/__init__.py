"""How much of the GPUs that teams hold their work uses, and what the rest costs: on a page and over the API."""
