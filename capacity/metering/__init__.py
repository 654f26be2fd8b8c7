"""Limits as a series of readings: how near each is, who was told of it, and when it will be reached."""
