"""What a run would be: its objects, where it may go, its GPUs, its price, and why it cannot be submitted."""
