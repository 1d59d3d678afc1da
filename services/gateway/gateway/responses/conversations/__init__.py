"""OpenAI's Conversations API: items that several responses continue, per tenant, erased with the user."""
