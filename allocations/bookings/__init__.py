"""Bookings: what was granted to begin later, which counts against capacity on its own days alone."""
