#!/usr/bin/env bash
# Runs the deployment's tests: run.sh [pytest's arguments]. As root on Debian it first installs the programs that are
# missing and, where no container engine answers, starts one, which it stops at the end. It never fails for want of them:
# the tests say what they skip.
set -euo pipefail
cd "$(dirname "$0")/../.."

programs=(docker-compose:docker-compose debootstrap:debootstrap promtool:prometheus)

# A client alone runs nothing, and its exit status may be 0 without a server: ask for the server's version.
engine_answers() {
  [ -n "$(docker info --format '{{.ServerVersion}}' 2>/dev/null)" ]
}

install_missing() {
  local packages=()
  engine_answers || command -v dockerd >/dev/null || packages+=(docker.io)
  for pair in "${programs[@]}"; do
    command -v "${pair%%:*}" >/dev/null || packages+=("${pair##*:}")
  done
  [ ${#packages[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "missing, and not installed (that needs root on Debian): ${packages[*]}" >&2
    return 0
  fi
  echo "installing ${packages[*]}" >&2
  # A daemon that Debian would start is not wanted: the tests start their own.
  printf '#!/bin/sh\nexit 101\n' > "$scratch/policy-rc.d" && chmod +x "$scratch/policy-rc.d"
  [ -e /usr/sbin/policy-rc.d ] || { ln -s "$scratch/policy-rc.d" /usr/sbin/policy-rc.d; policy=/usr/sbin/policy-rc.d; }
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends "${packages[@]}" iptables; } \
    >"$scratch/apt.log" 2>&1 || { echo "Debian's packages could not be installed:" >&2; tail -5 "$scratch/apt.log" >&2; }
}

# Debian 12 has no Compose that knows our file; Debian 13's needs nothing that 12 lacks.
fetch_compose() {
  local beside=.venv-deploy/bin/docker-compose
  docker compose version >/dev/null 2>&1 || [ -x $beside ] && return 0
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
  mkdir -p "$scratch/lists/partial"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main" >"$scratch/trixie.list"
  local apt=(apt-get -qq -o "Dir::Etc::SourceList=$scratch/trixie.list" -o Dir::Etc::SourceParts=-
    -o "Dir::State::Lists=$scratch/lists" -o APT::Sandbox::User=root)
  { "${apt[@]}" update && (cd "$scratch" && "${apt[@]}" download docker-compose) \
    && dpkg-deb -x "$scratch"/docker-compose_*.deb "$scratch/compose" \
    && install -m 755 "$scratch/compose/usr/libexec/docker/cli-plugins/docker-compose" $beside; } >"$scratch/apt.log" 2>&1 \
    || { echo "Debian 13's docker-compose could not be fetched; the tests derive a file for the older one" >&2; }
}

start_engine() {
  engine_answers && return 0
  [ "$(id -u)" = 0 ] && command -v dockerd >/dev/null || return 0
  dockerd >"$scratch/dockerd.log" 2>&1 & engine=$!
  for _ in $(seq 60); do
    engine_answers && return 0
    kill -0 "$engine" 2>/dev/null || break
    sleep 1
  done
  echo "no container engine could be started:" >&2
  tail -3 "$scratch/dockerd.log" >&2
}

end() {
  [ -z "${engine:-}" ] || { kill "$engine" 2>/dev/null && wait "$engine" || true; }
  [ -z "${policy:-}" ] || rm -f "$policy"
  rm -rf "$scratch"
}

scratch=$(mktemp -d)
trap end EXIT
install_missing
fetch_compose
start_engine
.venv-deploy/bin/pytest -c tests/deploy/pytest.ini --rootdir=. "$@"
