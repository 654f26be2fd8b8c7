"""The pages of runs: the form, a run's page, a team's list."""
