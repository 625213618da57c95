#!/usr/bin/env bash
# Builds the documentation; a warning is an error. Called by ./dev docs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

fill_venv() {
  python3 -m venv .venv
  .venv/bin/pip install --disable-pip-version-check -r docs/requirements.txt
  cp docs/requirements.txt .venv/installed.txt
}

mkdir -p build/docs
cmp -s docs/requirements.txt .venv/installed.txt ||
  step build/docs/venv.log "docs: installing Sphinx into .venv" fill_venv
step build/docs/doxygen.log "docs: reading the headers" doxygen Doxyfile
step build/docs/sphinx.log "docs: writing the pages" \
  .venv/bin/sphinx-build -W --keep-going -b html -d build/docs/doctrees docs build/docs/html
say "The documentation is build/docs/html/index.html."
