"""The report of a reproduction, and plots of results."""
