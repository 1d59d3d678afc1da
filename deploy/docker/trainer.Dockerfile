# Trainer: offline. Trains and evaluates; serves nothing.
FROM python:3.11-slim-bookworm
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
WORKDIR /src
COPY requirements/workspace.lock requirements/workspace.lock
RUN sed -nE 's/^([A-Za-z0-9_.-]+==[^ ]+).*/\1/p' requirements/workspace.lock > /constraints.txt
COPY packages/memloop packages/memloop
COPY trainer trainer
RUN python -m venv /opt/memloop \
 && /opt/memloop/bin/pip install --no-cache-dir --no-deps --index-url "${TORCH_INDEX}" torch==2.13.0+cpu \
 && /opt/memloop/bin/pip install --no-cache-dir --constraint /constraints.txt ./packages/memloop ./trainer
RUN useradd --system --uid 10001 --create-home memloop
USER 10001
WORKDIR /home/memloop
ENV PATH=/opt/memloop/bin:$PATH PYTHONUNBUFFERED=1
ENTRYPOINT ["python", "-m", "trainer.tiny"]
