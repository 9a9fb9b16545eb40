"""Numbers -> pages and figures."""
