#!/usr/bin/env bash
# Prefill and the four stages through Snakemake, scoring without a network, then the bridge table.
set -euo pipefail
cores=${CORES:-$(getconf _NPROCESSORS_ONLN)}
logs=.demo/logs
export NLTK_DATA=$PWD/.demo/nltk_data
mkdir -p "$logs"

# Runs Snakemake on a target, behind the command that follows if there is one.
workflow() {
    local target=$1 log=$logs/$1.log
    shift
    echo "== snakemake $target (all output: $log)"
    "$@" snakemake --profile demo/profile --cores "$cores" "$target" 2>&1 | tee "$log" || {
        echo "The demo stopped in $target; all output is in $log." >&2
        exit 1
    }
}

workflow prefill
workflow all demo/without_network.sh
echo
python -m evaluation bridge-table --config config/demo.yaml
echo
echo "== stage 2 compared with an ablation of it that learns half as fast"
python -m evaluation compare .demo/results/stage2 .demo/results/stage2_slow \
    --output .demo/results/ablation | grep -E 'is better from|is decided by|not significantly different'
echo
echo "This demonstrates the workflow: the checkpoints are one real model with less and less noise added"
echo "to its weights, and stage 4's step 100 with more, so the order of all of them is known."
python -m demo.order config/demo.yaml
echo
echo "Reports: .demo/results/report.html over all stages, .demo/results/stage*/report.html of each,"
echo "         .demo/results/ablation/comparison.html of the two runs of stage 2"
