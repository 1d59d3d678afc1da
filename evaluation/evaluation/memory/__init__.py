"""Evaluates the memory's answers on a user's LoCoMo, LongMemEval and HaluMem files."""
