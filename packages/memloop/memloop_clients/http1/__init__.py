"""HTTP/1.1 towards one peer: llhttp's parser (httptools) on asyncio's transports, connections kept and used again."""

from memloop_clients.http1.answer import Answer
from memloop_clients.http1.connection import Connection
from memloop_clients.http1.dialer import Dialer
from memloop_clients.http1.pool import Pool
from memloop_clients.http1.proxy import Proxy, proxy_for
from memloop_clients.http1.tls import Certificate, RenewedContext, client_context, server_context

__all__ = [
    "Answer",
    "Certificate",
    "Connection",
    "Dialer",
    "Pool",
    "Proxy",
    "RenewedContext",
    "client_context",
    "proxy_for",
    "server_context",
]
