"""Why a program failed: what happened, in a sentence, and what to change."""
