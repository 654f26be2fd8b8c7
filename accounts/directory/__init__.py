"""What the directory (Entra ID) says about people: read, followed, doubted, and given back."""
