"""The command `manela`: one file for each subcommand."""
