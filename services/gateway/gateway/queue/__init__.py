"""Durable jobs in Redis: lanes, tickets, the runner that works them, and the journal a job resumes from."""
