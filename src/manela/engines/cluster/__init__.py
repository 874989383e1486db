"""The engines that run on the machines of a Ray cluster."""
