"""Why the model gave an answer: finds evidence, checks it by removal, shows it."""
