"""How a team leaves: what ends, what is kept, what is deleted, and when."""
