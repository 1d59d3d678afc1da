# Inference: our launcher beside an engine, in the engine's own image, which stays as it is: the launcher has an
# environment of its own and starts the engine with the image's Python.
#   docker build -f deploy/docker/inference.Dockerfile -t localhost/memloop/inference-vllm:0.1.0 .
#   docker build -f deploy/docker/inference.Dockerfile -t localhost/memloop/inference-sglang:0.1.0 \
#     --build-arg ENGINE=sglang --build-arg ENGINE_IMAGE=lmsysorg/sglang:v0.5.23 .
# The engines compile kernels when they start: the compilers of their images stay.
# Behind a registry or an authority of your own: --secret id=pip,src=pip.conf --secret id=ca,src=ca.crt
# (in pip.conf: cert = /run/secrets/ca).
ARG ENGINE_IMAGE=vllm/vllm-openai:v0.33.0

FROM ${ENGINE_IMAGE} AS launcher
ENV PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /src
COPY requirements/images/build.lock requirements/images/launcher.lock ./
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca \
    python3 -m venv --without-pip /build && python3 -m venv --without-pip /opt/memloop \
 && python3 -m pip --python /build/bin/python install --no-deps --require-hashes -r build.lock \
 && python3 -m pip --python /opt/memloop/bin/python install --no-deps --require-hashes -r launcher.lock
COPY packages packages
COPY services/inference services/inference
RUN python3 -m pip --python /build/bin/python wheel --no-deps --no-build-isolation --wheel-dir /wheels \
      ./packages/memloop ./packages/memloop-service ./services/inference \
 && python3 -m pip --python /opt/memloop/bin/python install --no-cache-dir --no-deps --no-index /wheels/*.whl \
 && cp -r services/inference/models "$(/opt/memloop/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"

# hadolint ignore=DL3006
FROM ${ENGINE_IMAGE}
ARG ENGINE=vllm
RUN groupadd --system --gid 10001 memloop \
 && useradd --system --uid 10001 --gid memloop --no-create-home memloop \
 && install --directory --owner memloop --group memloop /cache
COPY --from=launcher /opt/memloop /opt/memloop
USER 10001:10001
VOLUME /cache
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/cache HF_HOME=/cache/huggingface \
    MEMLOOP_HOST=0.0.0.0 MEMLOOP_PORT=7802 MEMLOOP_ENGINE_HOST=0.0.0.0 MEMLOOP_ENGINE_PORT=7803 \
    MEMLOOP_ENGINE=${ENGINE} MEMLOOP_SERVE_PYTHON=python3
EXPOSE 7802 7803
HEALTHCHECK --interval=10s --timeout=3s --start-period=900s \
  CMD ["/opt/memloop/bin/python", "-c", "import os,urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"MEMLOOP_PORT\"]}/readyz', timeout=2)"]
ENTRYPOINT []
CMD ["/opt/memloop/bin/python", "-m", "inference.main"]
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="memloop-inference" \
      org.opencontainers.image.description="Starts and watches an inference engine" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
