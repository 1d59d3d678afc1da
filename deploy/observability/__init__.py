"""What watches the stack: dashboards as code, tests of the rules, the set-up of Prometheus and Grafana."""
