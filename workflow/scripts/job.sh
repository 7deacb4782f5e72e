# Begins the shell of every job. Arguments: the folder that the package is imported from, the Python that
# runs it, and the configuration of the run.
set -euo pipefail
evaluation_root=$1 evaluation_python=$2
export EVALUATION_CONFIG=$3

# Runs a command of the package. A log begins with it as it can be pasted into a shell.
evaluation() (
    export PYTHONPATH=$evaluation_root
    printf 'cd %q && EVALUATION_CONFIG=%q PYTHONPATH=%q' "$PWD" "$EVALUATION_CONFIG" "$PYTHONPATH" >&2
    printf ' %q' "$evaluation_python" -m evaluation "$@" >&2
    echo >&2
    exec "$evaluation_python" -m evaluation "$@"
)

recorded() { [ "$1" -eq 3 ]; }  # it failed for good, and its record says why: others go on
