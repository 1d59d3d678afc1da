"""mem0's platform API, for mem0's own client."""

from gateway.mem0.answers import MEM0 as MEM0
from gateway.mem0.routes import PATHS as PATHS
from gateway.mem0.routes import router as router
