"""The engines that run on one NVIDIA GPU."""
