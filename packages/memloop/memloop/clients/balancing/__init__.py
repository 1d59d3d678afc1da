"""Spreads a client's requests over the replicas of one server."""

from memloop.clients.balancing.balancer import Balancer, ProxyOf, ReplicaLoad, balancer_of
from memloop.clients.balancing.breaker import Breaker, CircuitOpen
from memloop.clients.balancing.resolving import Resolve, system_addresses
from memloop.clients.balancing.rules import Balancing
from memloop.clients.balancing.srv import Endpoint, is_srv, plain

__all__ = [
    "Balancer",
    "Balancing",
    "Breaker",
    "CircuitOpen",
    "Endpoint",
    "ProxyOf",
    "ReplicaLoad",
    "Resolve",
    "balancer_of",
    "is_srv",
    "plain",
    "system_addresses",
]
