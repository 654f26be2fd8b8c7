"""What the fleet is used for, what stops it and when it runs out: read from everything else, decided by nobody here."""
