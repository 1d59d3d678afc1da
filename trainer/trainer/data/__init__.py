"""Data sets: users' files read, rows to train on made, what was paid for kept. The benchmarks read here too."""
