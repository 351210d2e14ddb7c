"""Pages that flows leave behind, and the charts on them."""
