"""What differs from what should be: found, told, put right or taken over."""
