"""What should be on a cluster: the specification of a tenancy, and its manifests."""
