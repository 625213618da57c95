#!/usr/bin/env bash
# Puts the other allocators that the benchmarks can be built with into build/peers. What came is
# checked against the hashes in bench/peers/requirements.txt. Called by ./dev peers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

fetch() {
  rm -rf build/peers/rmm build/peers/venv
  python3 -m venv build/peers/venv
  build/peers/venv/bin/pip install --disable-pip-version-check --require-hashes --no-deps \
    --only-binary :all: --no-compile --target build/peers/rmm -r bench/peers/requirements.txt
  # librmm.so looks for it in its own folder.
  cp build/peers/rmm/rapids_logger/lib64/librapids_logger.so build/peers/rmm/librmm/lib64/
  cp bench/peers/requirements.txt build/peers/rmm/installed.txt
  rm -rf build/peers/venv
}

if cmp -s bench/peers/requirements.txt build/peers/rmm/installed.txt; then
  say "build/peers/rmm is there already."
else
  step build/peers/fetch.log "peers: fetching RMM into build/peers/rmm" fetch
fi
