"""What must always be true of a running installation, checked against its database and its clusters."""
