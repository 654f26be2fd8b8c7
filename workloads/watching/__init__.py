"""Watching clusters: a copy of what runs there, kept by changes and never by a list per page view."""
