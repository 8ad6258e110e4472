#!/usr/bin/env bash
# The demonstration: a lab of three simulated servers, Temporal with its Web
# UI and a worker, and the lab's lot provisioned to Ready. It uses the same
# commands as a person does, keeps everything in one temporary directory and
# leaves nothing behind. KEEP=1 leaves it up.
set -euo pipefail
cd "$(dirname "$0")/.."

starter=$PWD/bin/starter
dir=$(mktemp -d "${TMPDIR:-/tmp}/ironlot-demo.XXXXXX")
# Nothing of the caller's own settings gets into the demonstration.
for name in $(compgen -e | grep -E '^(TEMPORAL|SCW|IRONLOT)_|^SSH_AUTH_SOCK$'); do unset "$name"; done
export IRONLOT_HOME=$dir/state
mkdir -m 700 "$IRONLOT_HOME"
pids=()

stop() {
	trap - EXIT INT TERM
	for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
		kill -INT "${pids[i]}" 2>/dev/null || true
		wait "${pids[i]}" 2>/dev/null || true
	done
	rm -rf "$dir"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# free PORT gives PORT or the next one that nobody listens on.
free() {
	local port=$1
	while (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do port=$((port + 1)); done
	echo "$port"
}

# await WHAT LOG PATTERN PID waits until a log shows that a program is ready.
await() {
	local what=$1 log=$2 pattern=$3 pid=$4
	for ((i = 0; i < 600; i++)); do
		grep -q "$pattern" "$log" 2>/dev/null && return
		if ! kill -0 "$pid" 2>/dev/null; then break; fi
		sleep 0.1
	done
	echo "demo: $what did not start:" >&2
	tail -n 20 "$log" "$log.err" >&2
	exit 1
}

port=$(free 7233)
ui=$(free 8233)

echo "Starting a lab of three SIMULATED servers. None of what follows is real hardware."
"$starter" lab --quiet --dir "$dir/lab" --base 127.0.99.0 >"$dir/lab.log" 2>"$dir/lab.log.err" &
pids+=($!)
await "the lab" "$dir/lab.log" "Ctrl-C stops the lab" "$!"
# shellcheck source=/dev/null
source "$dir/lab/lab.env"

echo "Starting Temporal, its Web UI and a worker."
"$starter" up --port "$port" --ui-port "$ui" >"$dir/up.log" 2>"$dir/up.log.err" &
pids+=($!)
await "Temporal" "$dir/up.log" "Web UI" "$!"

echo "Provisioning the lab's lot ($dir/lab/lot.yaml)."
echo
"$starter" provision --yes --batch "$dir/lab/lot.yaml"

echo
if [[ -n ${KEEP:-} ]]; then
	trap - EXIT
	disown -a
	cat <<-EOF
		Left running because KEEP=${KEEP} is set:

		  Web UI     http://127.0.0.1:$ui
		  look       export IRONLOT_HOME=$IRONLOT_HOME; bin/starter status lab
		  stop       kill -INT ${pids[*]}; rm -rf $dir
	EOF
	exit
fi
echo "Stopping everything. KEEP=1 make demo leaves it up, to look at the Web UI (http://127.0.0.1:$ui)."
