"""The reproduction of the paper: its experiments, its tables and figures beside ours, and their page.

In the package only the command imports this room. What it measures with is in `analysis`; what it measures is in
`estimators`.
"""
