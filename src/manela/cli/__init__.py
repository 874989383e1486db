"""The command line `manela`, with a file for each command.

A command parses its arguments, calls functions of the rooms below, and prints. Modules of other rooms are imported when
a command runs, so that `--help` is quick. What Python code could want as well is in those rooms.
"""
