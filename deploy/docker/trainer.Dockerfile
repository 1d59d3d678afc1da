# Trainer: offline. Trains, evaluates and exports, alone or as head and worker of a Ray cluster; serves nothing.
#   docker build -f deploy/docker/trainer.Dockerfile -t localhost/memloop/trainer:0.1.0 .
# torch comes first: its CPU build, or for GPUs --build-arg TORCH=torch==2.13.0
#   --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cu130 (PyTorch's table names the index that fits your driver).
# Behind a registry or an authority of your own: --secret id=pip,src=pip.conf --secret id=ca,src=ca.crt
# (in pip.conf: cert = /run/secrets/ca).
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS dependencies
ENV PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
ARG TORCH=torch==2.13.0+cpu
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /src
COPY requirements/images/build.lock trainer/requirements.lock ./
# hadolint ignore=DL3013
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca \
    pip install --no-deps --require-hashes -r build.lock \
 && python -m venv --without-pip /opt/memloop \
 && { pip --python /opt/memloop/bin/python install --no-deps "${TORCH}" \
      || pip --python /opt/memloop/bin/python install --no-deps --index-url "${TORCH_INDEX}" "${TORCH}"; } \
 && pip --python /opt/memloop/bin/python install --no-deps --require-hashes -r requirements.lock

# Our own code is a layer of its own: a change of it leaves the packages' layer as it is.
FROM dependencies AS code
COPY packages/memloop packages/memloop
COPY trainer trainer
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels ./packages/memloop ./trainer \
 && pip --python /opt/memloop/bin/python install --no-cache-dir --no-deps --no-index --prefix /code /wheels/*.whl

FROM ${PYTHON_IMAGE}
# wget: what KubeRay asks a node's health with. The pin is Debian's release.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends wget && rm -rf /var/lib/apt/lists/*
RUN python -m pip uninstall --yes --root-user-action=ignore pip setuptools wheel \
 && rm -rf /usr/local/lib/python3.11/ensurepip /usr/share/python-wheels \
 && groupadd --system --gid 10001 memloop \
 && useradd --system --uid 10001 --gid memloop --create-home memloop \
 && install --directory --owner memloop --group memloop /runs
COPY --from=dependencies /opt/memloop /opt/memloop
COPY --from=code /code /opt/memloop
USER 10001:10001
WORKDIR /home/memloop
COPY trainer/recipes recipes
VOLUME /runs
ENV PATH=/opt/memloop/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 RAY_USAGE_STATS_ENABLED=0
# No health check: a run ends, and its exit status says how.
HEALTHCHECK NONE
CMD ["python", "-m", "trainer.tiny", "--help"]
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="memloop-trainer" \
      org.opencontainers.image.description="Data, training, evaluation and export" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
