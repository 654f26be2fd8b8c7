"""Capacity reservations: what teams were granted, made true in Azure, and how much of it is used."""
