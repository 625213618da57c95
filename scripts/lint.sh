#!/usr/bin/env bash
# Every check that runs no program of ours. Wants build/lint configured; called by ./dev lint.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/steps.sh

mapfile -t sources < <(git ls-files '*.hpp' '*.cpp' '*.cuh' '*.cu')
step build/lint/format.log "lint: format of ${#sources[@]} files" \
  clang-format-14 --dry-run --Werror "${sources[@]}"
step build/lint/layers.log "lint: layers" python3 scripts/check_layers.py
step build/lint/names.log "lint: names outside the project" python3 scripts/check_self_contained.py
step build/lint/faults.log "lint: tests of known faults" python3 scripts/check_known_faults.py

# The headers are seen through the tests of the layers that need neither Thrust nor CUDA, and these as
# they are compiled, several as one file.
mapfile -t units < <(python3 - <<'END'
import json
for unit in json.load(open("build/lint/compile_commands.json")):
    if any(f"/test/{layer}/" in unit["file"] for layer in ("core", "back", "front", "backend", "pool")):
        print(unit["file"])
END
)
tidy() {
  # Named by hand, a configuration that cannot be read is an error; found by itself it is not.
  printf '%s\0' "${units[@]}" |
    xargs -0 -n 1 -P "$(nproc)" clang-tidy-14 --config-file=.clang-tidy -p build/lint --quiet
}
step build/lint/tidy.log "lint: clang-tidy on ${#units[@]} units" tidy
