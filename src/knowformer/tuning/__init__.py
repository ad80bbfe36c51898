"""Search of settings: many short runs, judged by their validation facts alone."""
