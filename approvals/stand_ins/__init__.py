"""Stand-ins of people who decide, as the policy has it."""
