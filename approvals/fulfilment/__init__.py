"""What follows on a yes and on an end: tasks that people carry out, and what is let go."""
