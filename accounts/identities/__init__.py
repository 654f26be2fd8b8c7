"""Applications of Entra ID that act as a team's pipelines, without a secret of the portal."""
