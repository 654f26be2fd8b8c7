"""Pages that compose what several packages hold: home, a team, the palette, the event stream."""
