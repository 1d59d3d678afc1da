"""Reading a document of any length: plan, run, progress, records and the job that does it in the background."""
