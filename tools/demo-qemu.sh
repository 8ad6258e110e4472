#!/usr/bin/env bash
# One delivered server to a Ready node on a QEMU machine with a real kernel.
# Called by `make demo-qemu`; KEEP=1 leaves lab and Temporal up.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$(mktemp -d "${TMPDIR:-/tmp}/ironlot-demo-qemu-XXXXXX")
# Nothing of the caller's own settings gets into the demonstration.
for name in $(compgen -e | grep -E '^(TEMPORAL|SCW|IRONLOT)_|^SSH_AUTH_SOCK$' | grep -vx TEMPORAL_PORT); do unset "$name"; done
export IRONLOT_HOME="$dir/home"
mkdir -m 0700 "$IRONLOT_HOME"
pids=()
stop() {
	local status=$?
	trap - EXIT
	for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
		kill -INT "${pids[i]}" 2>/dev/null || true
		wait "${pids[i]}" 2>/dev/null || true
	done
	if [ $status -ne 0 ]; then
		echo "the demo failed; logs are in $dir" >&2
		tail -n 20 "$dir"/*.log >&2
	elif [ -z "${KEEP:-}" ]; then
		rm -rf "$dir"
	fi
	exit $status
}
trap stop EXIT
await() { # FILE PID LOG
	until [ -s "$1" ]; do
		kill -0 "$2" 2>/dev/null || { cat "$3" >&2; return 1; }
		sleep 0.2
	done
}

echo "EMULATED: one server on QEMU with a real Linux kernel, RAID, SysRq and boot from disk."
echo "Provider, firmware and Talos are the lab's; nothing here says how long real hardware takes."
bin/starter lab --machines qemu --servers 1 --speed 10 --base "${BASE:-127.0.42.0}" --dir "$dir/lab" >"$dir/lab.log" 2>&1 &
pids+=($!)
echo "preparing the machine (some minutes the first time, seconds later)"
await "$dir/lab/lab.env" "${pids[0]}" "$dir/lab.log"
# shellcheck disable=SC1091
. "$dir/lab/lab.env"

bin/starter up --port "${TEMPORAL_PORT:-7243}" --ui-port "${UI_PORT:-8243}" >"$dir/up.log" 2>&1 &
pids+=($!)
until bin/starter status >/dev/null 2>&1; do
	kill -0 "${pids[1]}" 2>/dev/null || { cat "$dir/up.log" >&2; exit 1; }
	sleep 0.5
done

bin/starter provision --batch "$dir/lab/lot.yaml" --yes
bin/starter status
if [ -n "${KEEP:-}" ]; then
	echo "everything stays up until Ctrl-C; source $dir/lab/lab.env and set IRONLOT_HOME=$IRONLOT_HOME to use it"
	trap : INT
	wait "${pids[0]}" || true
fi
