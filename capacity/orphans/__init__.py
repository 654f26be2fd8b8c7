"""Where the portal's books and Azure differ about reserved capacity: found by readings, released by platform leads."""
