"""How allocations end: given back, let go, reached their date, and the brake before many at once."""
