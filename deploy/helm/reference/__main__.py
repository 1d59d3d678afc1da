"""Writes both files anew: ``python -m deploy.helm.reference``."""

from deploy.helm.reference.values import outputs

for path, content in outputs().items():
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
