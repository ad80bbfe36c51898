"""Filtered ranking: scores to ranks, ranks to metrics, a split to a report."""
