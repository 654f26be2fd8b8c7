"""Notebook profiles as people of a team can choose them, each with its answer beforehand."""
