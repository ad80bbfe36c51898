"""What is measured once a model is trained."""
