"""Search: two rankings of one namespace, fused, then boosted by the times that the question names and by neighbours."""
