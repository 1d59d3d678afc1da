"""``/v1/admin/webhook-secret``: the secret for verifying a tenant's webhooks. Needs scope ``admin``."""

from fastapi import APIRouter

from gateway.access import PrincipalDep, Tenant, managed, needs
from gateway.webhooks.webhooks import WebhooksDep
from memloop.wire.keys import WebhookSecret
from memloop_service import ERRORS

router = APIRouter(prefix="/v1/admin", tags=["admin"], dependencies=[needs("admin")], responses=ERRORS)


@router.get("/webhook-secret")
async def read_webhook_secret(webhooks: WebhooksDep, principal: PrincipalDep, tenant: Tenant = None) -> WebhookSecret:
    """Return the secret with which a tenant's receiver verifies its webhooks."""
    whose = managed(principal, tenant)
    return WebhookSecret(tenant=whose, secret=webhooks.rules.signed().of(whose))
