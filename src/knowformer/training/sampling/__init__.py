"""What a training step asks and sees: batches, hidden edges, negatives, partitions."""
