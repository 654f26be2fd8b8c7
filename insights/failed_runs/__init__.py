"""Why runs failed lately, how often, and what they cost."""
