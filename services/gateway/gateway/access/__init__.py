"""Who calls, what they may do, how much of it, and the audit of both."""
