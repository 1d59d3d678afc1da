# Stands in for qdrant/qdrant, whose server no package registry carries: qdrant-client's local mode behind its REST API.
# It starts from the memory store's image, which holds the client.
ARG BASE
FROM ${BASE}
USER 0
COPY qdrant_server.py /opt/qdrant_server.py
RUN install --directory --owner 1000 --group 1000 /qdrant/storage
VOLUME /qdrant/storage
USER 1000:1000
EXPOSE 6333
HEALTHCHECK NONE
CMD ["python", "/opt/qdrant_server.py"]
