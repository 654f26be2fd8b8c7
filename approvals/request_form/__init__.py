"""The form to ask for an offering, with its answer beside it."""
