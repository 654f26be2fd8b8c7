"""What Azure says of the subscriptions of the fleet: sizes, quotas and node pools, as they were read last."""
