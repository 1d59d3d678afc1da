"""Long conversations with questions: the formats of LoCoMo, LongMemEval and HaluMem, read into one shape."""
