"""Questions to answers: names resolved, candidates ranked, probabilities and spread attached."""
