"""Models that teams call in Azure OpenAI, over the API."""
