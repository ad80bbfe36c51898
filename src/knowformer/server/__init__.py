"""Answers over HTTP: the library's own results as JSON, and a page that shows them."""
