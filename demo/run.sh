#!/usr/bin/env bash
# Prefill and the four stages through Snakemake, scoring without a network, then the bridge table.
set -euo pipefail
cores=${CORES:-$(getconf _NPROCESSORS_ONLN)}
logs=.demo/logs
mkdir -p "$logs"

# Runs Snakemake on a target; shows how far it is, keeps the rest in a file.
workflow() {
    local target=$1
    local log=$logs/$target.log
    shift
    echo "== $target (log: $log)"
    "$@" snakemake --profile demo/profile --cores "$cores" "$target" 2>&1 | tee "$log" |
        awk '/ steps \([0-9]+%\) done/ || /^Nothing to be done/ { print "   " $0; fflush() } /^   no network:/ { print; fflush() }' || {
        grep -v '^$' "$log" | tail -n 40
        echo "The demo stopped in $target; all of its output is in $log." >&2
        exit 1
    }
}

workflow prefill
for stage in stage1 stage2 stage3 stage4; do
    workflow "$stage" demo/without_network.sh
done
python -m evaluation bridge-table --config config/demo.yaml
