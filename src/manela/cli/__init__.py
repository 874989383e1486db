"""The command line `manela`, with a file for each command.

A command parses its arguments, calls functions of the rooms below, and prints. Modules of other rooms are imported when
a command runs, so that `--help` is quick. Nothing here computes what Python code could want as well.
"""
