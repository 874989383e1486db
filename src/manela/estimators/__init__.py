"""Estimators that follow the conventions of scikit-learn: `Manela`, and methods to compare it with.

This is the only room that knows scikit-learn's base classes. An estimator checks, plans, runs and keeps; how rounds
are run is the business of `engines`.
"""
