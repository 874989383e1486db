"""What hosts do: each has a part of the network, and they learn its vectors together."""
