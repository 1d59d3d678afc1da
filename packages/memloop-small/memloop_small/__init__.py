"""memloop-small: a base that a package ships, an adapter that our trainer made, and the served model of both.

Nothing here needs torch.
"""
