"""Estimators by scikit-learn's conventions."""
