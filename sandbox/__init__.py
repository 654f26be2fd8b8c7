"""Offline stand-ins for the systems the portal talks to."""
