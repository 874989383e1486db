"""The command line `manela`, with one file for each subcommand."""
