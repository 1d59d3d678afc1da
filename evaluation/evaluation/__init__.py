"""Quality on a user's own data: how well the memory answers, what retrieval finds, how well the loops read."""
