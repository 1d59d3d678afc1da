# Stands in for redis:7.4-bookworm: Debian's Redis 7.0 with the official image's user, folder and command.
ARG BASE
FROM ${BASE}
# hadolint ignore=DL3008
RUN groupadd --system --gid 999 redis && useradd --system --uid 999 --gid redis --home-dir /data redis \
 && apt-get update && apt-get install --yes --no-install-recommends redis-server && rm -rf /var/lib/apt/lists/* \
 && install --directory --owner redis --group redis /data
VOLUME /data
WORKDIR /data
EXPOSE 6379
CMD ["redis-server"]
