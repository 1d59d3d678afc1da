"""HTTP/1.1 towards one peer: llhttp's parser (httptools) on asyncio's transports, connections kept and used again."""

from memloop.clients.http1.answer import Answer
from memloop.clients.http1.connection import Connection
from memloop.clients.http1.dialer import Dialer
from memloop.clients.http1.pool import Pool
from memloop.clients.http1.proxy import Proxy, proxy_for

__all__ = ["Answer", "Connection", "Dialer", "Pool", "Proxy", "proxy_for"]
