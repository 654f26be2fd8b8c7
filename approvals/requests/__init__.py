"""Requests: asked, judged, listed and shown."""
