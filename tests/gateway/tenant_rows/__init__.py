"""The rows of the tenant matrix, one module per capability. A new route needs a row in one of these tables:

* ``ATTEMPTS[route]``: how tenant B tries to reach what tenant A owns, and what B may get (404 unless told otherwise).
  What A owns is made in ``tests/gateway/tenants.py``; ``{item}`` and the like stand for A's ids.
* ``SAME_FOR_ALL[route]``: the route needs a key and holds nothing of a tenant; the value says why.
* ``OPEN[route]``: the route needs no key; the value says why it may.

``route`` is the method and the path template. A new module goes into ``_MODULES`` of ``all_rows.py``.
"""
