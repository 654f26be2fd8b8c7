"""The recurring parts of every page, by kind, and how amounts are written. `{% load parts %}` gives them."""
