"""Maps of vectors on a plane, as one HTML page that works offline."""
