"""How much longer a tenant's add and chat take while another tenant floods the queues."""
