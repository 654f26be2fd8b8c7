"""Where platform leads read, draft, simulate and activate the policy."""
