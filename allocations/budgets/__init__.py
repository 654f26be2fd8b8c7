"""Money and GPU-hours of teams: limits, what is set aside, and where a month leads."""
