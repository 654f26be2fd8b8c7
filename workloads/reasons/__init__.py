"""Why a job does not run: one module for each stage, each a function from facts to an answer or None. Pure."""
