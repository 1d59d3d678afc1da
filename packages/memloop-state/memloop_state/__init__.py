"""Everything that outlives a request, in Redis: connections, records with owners, quotas and ends.

The one package that speaks Redis's commands: a slice declares a table and calls it by names of its own field.
"""
