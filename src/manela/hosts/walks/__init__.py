"""The paper's exchange between hosts: walks that pass through hosts, and vectors of random nodes.

It is `state` for `exchange="walks"`: pure, too. It discloses more than messages do, which docs/threat-model.md says.
"""
