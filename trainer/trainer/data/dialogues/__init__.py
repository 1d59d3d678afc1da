"""Reads long conversations with questions: the formats of LoCoMo, LongMemEval and HaluMem, converted to one shape."""
