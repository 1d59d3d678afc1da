"""Grafana's dashboards as code: ``python -m deploy.observability.dashboards FOLDER`` writes their JSON files."""
