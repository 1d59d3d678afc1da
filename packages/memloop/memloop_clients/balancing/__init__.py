"""Spreads a client's requests over the replicas of one server."""

from memloop_clients.balancing.balancer import ProxyOf, ReplicaLoad, balancer_of
from memloop_clients.balancing.replica import Balancing, Breaker, CircuitOpen
from memloop_clients.balancing.resolving import Endpoint, is_srv, plain

__all__ = [
    "Balancing",
    "Breaker",
    "CircuitOpen",
    "Endpoint",
    "ProxyOf",
    "ReplicaLoad",
    "balancer_of",
    "is_srv",
    "plain",
]
