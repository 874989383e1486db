"""Maps: vectors on a plane, as one page that works without a network."""
