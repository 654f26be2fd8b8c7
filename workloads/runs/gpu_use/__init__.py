"""How busy the GPUs of runs are: measured, and in words."""
