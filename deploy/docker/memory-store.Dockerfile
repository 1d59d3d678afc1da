# Memory store: embeddings on the CPU, vectors on a Qdrant server (QDRANT_URL) or embedded under MEMLOOP_DATA_DIR.
#   docker build -f deploy/docker/memory-store.Dockerfile -t localhost/memloop/memory-store:0.1.0 .
# torch's CPU build comes first, from where pip is configured to look, else from PyTorch's own index.
# Programs of torch's own tests and OpenVINO's plug-ins for GPUs and NPUs are deleted: nothing here runs them.
# Behind a registry or an authority of your own: --secret id=pip,src=pip.conf --secret id=ca,src=ca.crt
# (in pip.conf: cert = /run/secrets/ca).
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS dependencies
ENV PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_COMPILE=1
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /src
COPY requirements/images/build.lock requirements/images/memory-store.lock ./
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca \
    pip install --no-deps --require-hashes -r build.lock \
 && python -m venv --without-pip /opt/memloop \
 && { pip --python /opt/memloop/bin/python install --no-deps torch==2.13.0+cpu \
      || pip --python /opt/memloop/bin/python install --no-deps --index-url "${TORCH_INDEX}" torch==2.13.0+cpu; } \
 && pip --python /opt/memloop/bin/python install --no-deps --require-hashes -r memory-store.lock \
 && find /opt/memloop -regex '.*\.\([ch]\|hpp\|cuh\|pyx\|px[di]\|pyc\)' -delete \
 && find /opt/memloop -type f ! -name torch_shm_manager \( -path '*/torch/bin/*' -o -path '*/torch/test/*' \
      -o -path '*/openvino/libs/cache.json' -o -name 'libopenvino_intel_[gn]pu_plugin.so' \) -delete

# Our own code, and the bytecode of all that a start imports: a layer of its own, so that a change of our code leaves
# the packages' layer as it is.
FROM dependencies AS code
COPY packages packages
COPY services/memory-store services/memory-store
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels ./packages/memloop ./packages/memloop-service ./packages/memloop-state ./services/memory-store \
 && pip --python /opt/memloop/bin/python install --no-cache-dir --no-deps --no-index --prefix /code /wheels/*.whl
WORKDIR /opt/memloop
RUN PYTHONPATH=/code/lib/python3.11/site-packages bin/python -c \
      "import memory_store.main, transformers.models.bert.modeling_bert, sentence_transformers, urllib.request" \
 && find . -name '*.pyc' -exec cp --parents --preserve --target-directory /code {} +

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
ENV PATH=/opt/memloop/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HF_HUB_OFFLINE=1 HOME=/tmp \
    MEMLOOP_HOST=0.0.0.0 MEMLOOP_PORT=7801 MEMLOOP_DATA_DIR=/data
EXPOSE 7801 7809
HEALTHCHECK --interval=10s --timeout=3s --start-period=120s \
  CMD ["python", "-c", "import os,urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"MEMLOOP_PORT\"]}/livez', timeout=2)"]
CMD ["python", "-m", "memory_store.main"]
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="memloop-store" \
      org.opencontainers.image.description="Memory items, versions and hybrid retrieval" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
