# All in one, for a first try: gateway, worker, memory store on Qdrant Edge, and Redis, in one container with one volume.
# It is made of two of our images, whose packages have the same pins; `make all-in-one` builds the three.
#   docker build -f deploy/docker/all-in-one.Dockerfile -t localhost/memloop/all-in-one:0.1.0 .
# A single process that dies stops the container: a service of several users is docker-compose.yml's or the chart's.
ARG GATEWAY_IMAGE=localhost/memloop/gateway:0.1.0
ARG STORE_IMAGE=localhost/memloop/memory-store:0.1.0

# hadolint ignore=DL3006
FROM ${GATEWAY_IMAGE} AS gateway

# hadolint ignore=DL3006
FROM ${STORE_IMAGE}
USER 0
# tini reaps orphans and passes signals on. The pins are Debian's release.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends redis-server tini && rm -rf /var/lib/apt/lists/*
COPY --from=gateway /opt/memloop /opt/memloop
# The bytecode of what a start imports: that of the two images belongs to files of another time.
RUN PYTHONDONTWRITEBYTECODE='' python -c \
      "import gateway.main, gateway.worker, memory_store.main, sentence_transformers, importlib, pkgutil, gateway.extract as e; \
       [importlib.import_module(part.name) for part in pkgutil.iter_modules(e.__path__, 'gateway.extract.')]"
COPY deploy/docker/all_in_one.py /opt/memloop/all_in_one.py
USER 10001:10001
VOLUME /data
# Stopped within the 10 s that docker stop gives.
ENV MEMLOOP_HOST=0.0.0.0 MEMLOOP_PORT=7800 MEMLOOP_STOP_GRACE_S=5 MEMLOOP_STOP_WAIT_S=5
EXPOSE 7800
HEALTHCHECK --interval=10s --timeout=3s --start-period=180s \
  CMD ["python", "-c", "import os,urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"MEMLOOP_PORT\"]}/readyz', timeout=2)"]
ENTRYPOINT ["tini", "--", "python", "/opt/memloop/all_in_one.py"]
CMD []
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="memloop-all-in-one" \
      org.opencontainers.image.description="Gateway, worker, memory store and Redis in one container, for a first try" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
