"""Every part of a page on one page, for who designs them."""
