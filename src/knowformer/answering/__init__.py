"""Questions to answers: names to ids, ids to rankings, rankings to names; one, many, or a file."""
