"""Cost centres that somebody answers for, and who confirms them."""
