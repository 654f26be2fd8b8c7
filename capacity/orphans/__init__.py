"""Where the portal and Azure differ about reserved capacity: found by readings, released by platform leads."""
