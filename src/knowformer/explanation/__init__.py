"""Why the model gave an answer: attended entities, paths, and how far both can be trusted."""
