# Gateway API and worker: one image, two commands.
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
COPY requirements/workspace.lock requirements/workspace.lock
RUN sed -nE 's/^([A-Za-z0-9_.-]+==[^ ]+).*/\1/p' requirements/workspace.lock > /constraints.txt
COPY packages/memloop packages/memloop
COPY services/gateway services/gateway
RUN python -m venv /opt/memloop \
 && /opt/memloop/bin/pip install --no-cache-dir --constraint /constraints.txt ./packages/memloop ./services/gateway

FROM python:3.11-slim-bookworm
COPY --from=build /opt/memloop /opt/memloop
RUN useradd --system --uid 10001 --no-create-home memloop && install --directory --owner 10001 /data
USER 10001
ENV PATH=/opt/memloop/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 MEMLOOP_HOST=0.0.0.0 MEMLOOP_PORT=7800
EXPOSE 7800
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["python", "-c", "import os,urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"MEMLOOP_PORT\"]}/livez', timeout=2)"]
CMD ["python", "-m", "gateway.main"]
