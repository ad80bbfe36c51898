"""What is odd in a data set: findings with their evidence, as tables and text."""
