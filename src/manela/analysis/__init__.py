"""What vectors are for: scores of labels and links, groups, odd and missing edges, tuning, and answers over HTTP.

Everything here takes networks and vectors, or an estimator that learns them. Nothing here knows how vectors are
learned, or reads a command line.
"""
