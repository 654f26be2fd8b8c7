"""Notebook servers as people use them: launched from a profile's card, followed on a page, kept, stopped."""
