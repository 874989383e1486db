"""Every compiled line: arrays in, arrays out."""
