"""Requests that let an allocation go on."""
