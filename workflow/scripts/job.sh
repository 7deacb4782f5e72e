# The shell around every job; read with $evaluation_root, $evaluation_python and $EVALUATION_CONFIG set (rules/common.smk).
set -euo pipefail

# Runs a command of the package. A log begins with it as it can be pasted into a shell.
evaluation() (
    export PYTHONPATH=$evaluation_root
    printf 'cd %q && EVALUATION_CONFIG=%q PYTHONPATH=%q' "$PWD" "$EVALUATION_CONFIG" "$PYTHONPATH" >&2
    printf ' %q' "$evaluation_python" -m evaluation "$@" >&2
    echo >&2
    exec "$evaluation_python" -m evaluation "$@"
)

logged() ( trap '' TERM INT; exec tee "$1" )

recorded() { [ "$1" -eq 3 ]; }  # it failed for good, and its record says why: others go on
