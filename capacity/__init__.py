"""Azure: what the subscriptions allow, what is reserved there and what it costs, from quota to node pool."""
