"""The quota chain: every limit from an Azure subscription down to a team's pods, in GPUs, and which stops an ask."""
