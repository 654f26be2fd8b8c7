"""What is approved automatically and who decides the rest: document, rules and evaluation."""
