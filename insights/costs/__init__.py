"""What teams and cost centres are charged, month by month: on a page, over the API, and as a file for finance."""
