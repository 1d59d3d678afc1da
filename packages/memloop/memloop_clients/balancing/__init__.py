"""Spreads a client's requests over the replicas of one server."""

from memloop_clients.balancing.balancer import Balancer, ProxyOf, ReplicaLoad, balancer_of
from memloop_clients.balancing.replica import Balancing, Breaker, CircuitOpen
from memloop_clients.balancing.resolving import Endpoint, Resolve, is_srv, plain, system_addresses

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
