"""Placeholder while trying."""

from deploy.observability.dashboards.charts import Board

BOARD = Board("trainer", "Memloop: trainer", "x", ())
