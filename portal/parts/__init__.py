"""The recurring parts of every page, by kind; `{% load parts %}` gives all of them."""
