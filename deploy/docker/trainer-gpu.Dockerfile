# Trainer for NVIDIA GPUs: verl with the vLLM and the torch that it pins, and with the CUDA libraries of their wheels. Head
# and workers of a Ray cluster run it. It needs a driver for CUDA 13 and x86-64; images are some 12 GB.
#   docker build -f deploy/docker/trainer-gpu.Dockerfile -t localhost/memloop/trainer-gpu:0.1.0 .
# flash-attn is not in it: the recipes use sdpa. For parts/flash-attn.yaml, which compiles for an hour or so:
#   --build-arg FLASH_ATTN=flash-attn==2.8.3
# Behind a registry or an authority of your own: --secret id=pip,src=pip.conf --secret id=ca,src=ca.crt
# (in pip.conf: cert = /run/secrets/ca).
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${PYTHON_IMAGE} AS dependencies
ENV PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
ARG FLASH_ATTN=""
WORKDIR /src
# The pin is Debian's release.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
COPY requirements/images/build.lock trainer/requirements-gpu.lock ./
# torch's builds link -lcudart in lib64; the wheel of CUDA's runtime has lib/libcudart.so.13 alone.
# hadolint ignore=DL3013
RUN --mount=type=cache,target=/root/.cache/pip \
    --mount=type=secret,id=pip,target=/etc/pip.conf --mount=type=secret,id=ca \
    pip install --no-deps --require-hashes -r build.lock \
 && python -m venv --without-pip /opt/memloop \
 && pip --python /opt/memloop/bin/python install --no-deps --require-hashes -r requirements-gpu.lock \
 && cuda="$(/opt/memloop/bin/python -c 'import nvidia.cu13 as cuda; print(list(cuda.__path__)[0])')" \
 && ln -s lib "${cuda}/lib64" \
 && ln -s libcudart.so.13 "${cuda}/lib/libcudart.so" \
 && if [ -n "${FLASH_ATTN}" ]; then CUDA_HOME="${cuda}" \
      pip --python /opt/memloop/bin/python install --no-deps --no-build-isolation "${FLASH_ATTN}"; fi

# Our own code is a layer of its own: a change of it leaves the packages' layer as it is.
FROM dependencies AS code
COPY packages/memloop packages/memloop
COPY trainer trainer
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels ./packages/memloop ./trainer \
 && pip --python /opt/memloop/bin/python install --no-cache-dir --no-deps --no-index --prefix /code /wheels/*.whl

FROM ${PYTHON_IMAGE}
# gcc: Triton and FlashInfer compile their kernels when a run starts. wget: what KubeRay asks a node's health with.
# The pin is Debian's release.
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends g++ libnuma1 wget && rm -rf /var/lib/apt/lists/*
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
# Compiled kernels go below HOME, which the chart sets to a writable folder.
ENV PATH=/opt/memloop/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 RAY_USAGE_STATS_ENABLED=0 \
    VLLM_NO_USAGE_STATS=1 NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
# No health check: a run ends, and its exit status says how.
HEALTHCHECK NONE
CMD ["python", "-m", "trainer", "train", "--help"]
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="memloop-trainer-gpu" \
      org.opencontainers.image.description="Training on NVIDIA GPUs: verl, vLLM, torch" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
