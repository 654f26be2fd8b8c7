"""How reliable services of teams are, held against what was agreed: tiers, measuring, error budgets."""
