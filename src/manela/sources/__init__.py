"""Where networks live: each file reads one kind of place, and yields edges."""
