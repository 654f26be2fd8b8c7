"""How busy the GPUs of runs and notebooks are: measured, and in words."""
