"""Who runs the rounds."""
