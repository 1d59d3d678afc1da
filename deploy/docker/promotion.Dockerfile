# Promotion: a Job that gates a candidate and moves production to it (docs/how-to/checkpoint-to-production.md). It has the
# trainer's gate, inference's checks of an engine and the client of object storage, and neither torch nor an engine.
#   docker build -f deploy/docker/promotion.Dockerfile -t localhost/memloop/promotion:0.1.0 .
# Behind a registry or an authority of your own: --secret id=pip,src=pip.conf --secret id=ca,src=ca.crt
# (in pip.conf: cert = /run/secrets/ca).
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS dependencies
ENV PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY requirements/images/build.lock requirements/images/promotion.lock ./
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca \
    pip install --no-deps --require-hashes -r build.lock \
 && python -m venv --without-pip /opt/memloop \
 && pip --python /opt/memloop/bin/python install --no-deps --require-hashes -r promotion.lock

FROM dependencies AS code
COPY packages packages
COPY services/inference services/inference
COPY trainer trainer
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels \
      ./packages/memloop ./packages/memloop-service ./services/inference ./trainer \
 && pip --python /opt/memloop/bin/python install --no-cache-dir --no-deps --no-index --prefix /code /wheels/*.whl

FROM ${PYTHON_IMAGE}
RUN python -m pip uninstall --yes --root-user-action=ignore pip setuptools wheel \
 && rm -rf /usr/local/lib/python3.11/ensurepip /usr/share/python-wheels \
 && groupadd --system --gid 10001 memloop \
 && useradd --system --uid 10001 --gid memloop --no-create-home memloop \
 && install --directory --owner memloop --group memloop /data
COPY --from=dependencies /opt/memloop /opt/memloop
COPY --from=code /code /opt/memloop
USER 10001:10001
VOLUME /data
ENV PATH=/opt/memloop/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# No health check: a run ends, and its exit status says how.
HEALTHCHECK NONE
CMD ["python", "-m", "trainer", "promote", "--help"]
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="memloop-promotion" \
      org.opencontainers.image.description="Gates a candidate and moves production to it" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
