"""Data sets: reads users' files, makes training rows, keeps paid results. The benchmarks use the readers too."""
