"""What is asked and what is said over HTTP."""
