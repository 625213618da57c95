# Finds and installs what the commands of ./dev need. Sourced by ./dev, after scripts/steps.sh.

# A package of Debian and Ubuntu is there when what it brings is there, wherever it came from.
has_package() {
  case "$1" in
    cmake | python3 | git | doxygen | valgrind) command -v "$1" ;;
    ninja-build) command -v ninja ;;
    g++) command -v c++ ;;
    clang-14 | clang-format-14 | clang-tidy-14) command -v "$1" ;;
    python3-venv) python3 -c 'import ensurepip' ;;
    doctest-dev) has_header doctest/doctest.h ;;
    libbenchmark-dev) has_header benchmark/benchmark.h ;;
    libcli11-dev) has_header CLI/CLI.hpp ;;
    libtbb-dev) has_header tbb/version.h ;;
    nlohmann-json3-dev) has_header nlohmann/json.hpp ;;
  esac >/dev/null 2>&1
}

has_header() {
  printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$1" | c++ -E -x c++ - >/dev/null 2>&1
}

missing_of() {
  local package
  for package in "$@"; do
    has_package "${package}" || printf '%s\n' "${package}"
  done
}

# set_up COMMAND: what COMMAND cannot do without must be there afterwards, the rest may be missing.
set_up() {
  local needed=(cmake ninja-build g++ python3) useful=()
  case "$1" in
    test)
      needed+=(doctest-dev)
      useful+=(libtbb-dev nlohmann-json3-dev libcli11-dev libbenchmark-dev valgrind)
      ;;
    fuzz) needed+=(clang-14 doctest-dev) ;;
    matrix) needed+=(clang-14 doctest-dev python3-venv) ;;
    demo) needed+=(libcli11-dev nlohmann-json3-dev) ;;
    bench) needed+=(libbenchmark-dev) ;;
    lint)
      needed+=(git clang-format-14 clang-tidy-14 doctest-dev)
      useful+=(libtbb-dev nlohmann-json3-dev)
      ;;
    peers) needed=(python3 python3-venv) ;;
    docs) needed=(doxygen python3 python3-venv) ;;
    everything)
      useful+=(doctest-dev libtbb-dev nlohmann-json3-dev libcli11-dev libbenchmark-dev
        valgrind git clang-14 clang-format-14 clang-tidy-14 doxygen python3-venv)
      ;;
  esac

  local missing
  mapfile -t missing < <(missing_of "${needed[@]}" "${useful[@]}")
  [ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}"
  mapfile -t missing < <(missing_of "${needed[@]}")
  [ ${#missing[@]} -eq 0 ] || die "This cannot go on without: ${missing[*]}."
  mapfile -t missing < <(missing_of "${useful[@]}")
  [ ${#missing[@]} -eq 0 ] || say "Left out is what needs: ${missing[*]}."
}

install_packages() {
  local as_root=()
  if ! command -v apt-get >/dev/null; then
    say "There is no apt-get here to install: $*."
  elif [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
    say "Neither root nor sudo is there to install: $*."
  else
    [ "$(id -u)" -eq 0 ] || as_root=(sudo)
    local options=(-y -o DPkg::Lock::Timeout=120)
    step build/setup.log "installing $*" --may-fail "${as_root[@]}" bash -c "
      export DEBIAN_FRONTEND=noninteractive
      apt-get update && apt-get install ${options[*]} --no-install-recommends $*"
  fi
}

# Puts nvcc on PATH where a CUDA Toolkit is in one of the usual places.
find_cuda() {
  command -v nvcc >/dev/null && return
  local place
  while read -r place; do
    if [ -x "${place}/bin/nvcc" ]; then
      export PATH="${place}/bin:${PATH}"
      return
    fi
  done < <(printf '%s\n' "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda
    printf '%s\n' /usr/local/cuda-* | sort -rV)
  return 1
}

has_gpu() { nvidia-smi -L 2>/dev/null | grep -q '^GPU '; }

# The GPU's own architecture; one that exists everywhere where there is none, to build quickly.
cuda_architecture() {
  if has_gpu; then
    nvidia-smi --query-gpu=compute_cap --format=csv,noheader | sort -u | tr -d . | paste -sd ';'
  else
    printf '90\n'
  fi
}
