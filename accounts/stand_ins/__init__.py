"""People who decide for others for some days."""
