# Inference: our launcher on an engine's own image, unmodified. BASE chooses the engine:
#   vllm/vllm-openai:v0.33.0 (default) or lmsysorg/sglang:v0.5.23
ARG BASE=vllm/vllm-openai:v0.33.0
FROM ${BASE}
WORKDIR /src
COPY packages/memloop packages/memloop
COPY services/inference services/inference
# The engine's image holds the launcher's dependencies already; what it lacks comes without touching its own versions.
RUN python3 -m pip install --no-cache-dir --no-deps ./packages/memloop ./services/inference \
 && python3 -m pip install --no-cache-dir --upgrade-strategy only-if-needed "pydantic-settings==2.16.3" "prometheus-client==0.26.0" "orjson==3.13.0" \
 && cp -r services/inference/models "$(python3 -c 'import inference; print(inference.__path__[0])')/.." && rm -rf /src/*
ENV PYTHONUNBUFFERED=1 HF_HOME=/cache/huggingface MEMLOOP_HOST=0.0.0.0 MEMLOOP_PORT=7802 \
    MEMLOOP_ENGINE_HOST=0.0.0.0 MEMLOOP_ENGINE_PORT=7803
EXPOSE 7802 7803
ENTRYPOINT ["python3", "-m", "inference.main"]
