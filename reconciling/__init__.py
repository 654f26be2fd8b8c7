"""The engine: rows that workers make true, one worker for each, again and again. It knows no cluster, team or run."""
