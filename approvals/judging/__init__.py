"""What the policy is told about a request: what its team holds, what was asked before, who waits."""
