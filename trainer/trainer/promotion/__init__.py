"""A checkpoint's way from the gate to production: a share of the requests, a rule, then all of them or none."""
