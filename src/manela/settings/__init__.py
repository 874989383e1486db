"""Parameters, settings and schedules: what a run shall do, decided before it begins.

`parameters` is the table from which estimators take their checks and the command line its flags. Checked together
they are `settings`, their length is a `budget`, and the rounds of a run are its `schedule`. All of it takes sizes and
degrees: nothing here knows a `Graph`, a file or an engine.
"""
