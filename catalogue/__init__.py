"""What can be asked for: offerings with their specification, size, price and choices."""
