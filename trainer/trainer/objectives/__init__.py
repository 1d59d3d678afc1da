"""What training maximises: rewards of rollouts, and the advantages and losses made of them.

Pure functions over tensors and plain values, with no framework around them: the rollout's adapters bring the rows in
and take the advantages out. Shapes: ``rows`` counts conversations (one turn of a loop each), ``rollouts`` whole runs of
a loop, ``tokens`` the padded response.
"""
