# Stands in for prom/prometheus: Debian's Prometheus with the official image's folders, user and entry point.
ARG BASE
FROM ${BASE}
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends prometheus wget && rm -rf /var/lib/apt/lists/* \
 && install --directory --owner 65534 --group 65534 /prometheus
VOLUME /prometheus
WORKDIR /prometheus
USER 65534:65534
EXPOSE 9090
ENTRYPOINT ["/usr/bin/prometheus"]
