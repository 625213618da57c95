# Long work, quietly: where it is while it runs, its log's end when it fails. Sourced by ./dev.

say() { printf '%s\n' "$*" >&2; }

die() {
  say "$*"
  exit 1
}

# step LOG WHAT [--may-fail] COMMAND...: runs COMMAND with its output in LOG.
step() {
  local log=$1 what=$2 may_fail=no started=${SECONDS} status=0
  shift 2
  if [ "$1" = --may-fail ]; then
    may_fail=yes
    shift
  fi
  mkdir -p "$(dirname "${log}")"
  : >"${log}"
  say "${what} (log: ${log})"
  watch_log "${log}" &
  local watcher=$!
  "$@" >"${log}" 2>&1 </dev/null || status=$?
  kill "${watcher}" 2>/dev/null || true
  wait "${watcher}" 2>/dev/null || true
  [ ! -t 2 ] || printf '\r\033[K' >&2
  if [ "${status}" -ne 0 ] && [ "${may_fail}" = no ]; then
    grep -vE '^\[[0-9]+/[0-9]+\] (Building|Linking) ' "${log}" | tail -n 60 >&2
    die "${what} failed after $((SECONDS - started)) s; the whole log is ${log}."
  fi
}

# Shows a log's last line: each second on a terminal, each minute elsewhere.
watch_log() {
  local log=$1 owner=$$ pause=60
  [ ! -t 2 ] || pause=1
  while sleep "${pause}" >/dev/null 2>&1 && kill -0 "${owner}" 2>/dev/null; do
    local line
    line=$(tail -n 1 "${log}" | cut -c "1-$((${COLUMNS:-100} - 2))")
    if [ -t 2 ]; then
      printf '\r\033[K%s' "${line}" >&2
    else
      say "  ${line}"
    fi
  done
}
