"""How well the memory answers, on LoCoMo, LongMemEval and HaluMem files of the user's."""
