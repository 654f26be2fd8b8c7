"""Azure OpenAI: the models that teams may call, made true in Azure, and what is left of their quota."""
