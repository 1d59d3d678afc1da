"""Memory policies per tenant, agent and user, and the redaction that they ask for."""

from gateway.policy.merging import category_of as category_of
from gateway.policy.merging import end_of as end_of
from gateway.policy.policies import Keeper as Keeper
from gateway.policy.policies import Redactions as Redactions
from gateway.policy.policies import chars_of as chars_of
from gateway.policy.policies import keeper_of as keeper_of
from gateway.policy.policies import redacted_metadata as redacted_metadata
from gateway.policy.policies import redacted_records as redacted_records
from gateway.policy.policies import redacted_turns as redacted_turns
from gateway.policy.redaction.finding import Found as Found
from gateway.policy.redaction.finding import Redaction as Redaction
from gateway.policy.redaction.finding import find_by_rules as find_by_rules
from gateway.policy.redaction.finding import redacted_json as redacted_json
from gateway.policy.redaction.finding import replaced as replaced
