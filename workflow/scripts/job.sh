# The shell of every job sources this first. Arguments: the folder from which the package is imported; the
# Python that runs it, but for one of an image or an environment of Snakemake; the configuration of the run,
# and the variable with its text.
set -euo pipefail
evaluation_root=$1 evaluation_python=$2
export EVALUATION_CONFIG=$3
case "${APPTAINER_CONTAINER:-}${CONDA_PREFIX:-}" in
    *.sif | */.snakemake/conda/*) evaluation_python=python ;;
esac

# The configuration of the run, readable by its user alone, as a command in it may hold secrets. A new one
# removes those of long ago.
if [ ! -e "$EVALUATION_CONFIG" ]; then
    mkdir -p "${3%/*/*}"
    (
        umask 077
        mkdir -p "${EVALUATION_CONFIG%/*}"
        printf '%s' "${!4}" > "$EVALUATION_CONFIG.$$.$RANDOM"
        mv "$EVALUATION_CONFIG.$$".* "$EVALUATION_CONFIG"
        find "${EVALUATION_CONFIG%/*}" -ignore_readdir_race -name '*.yaml' -mtime +30 -delete
    )
fi

# Runs a command of the package. Its log begins with the command, ready to paste into a shell.
evaluation() (
    export PYTHONPATH=$evaluation_root
    printf 'cd %q && EVALUATION_CONFIG=%q PYTHONPATH=%q' "$PWD" "$EVALUATION_CONFIG" "$PYTHONPATH" >&2
    printf ' %q' "$evaluation_python" -m evaluation "$@" >&2
    echo >&2
    exec "$evaluation_python" -m evaluation "$@"
)

recorded() { [ "$1" -eq 3 ]; }  # exit code 3: the record states a permanent error; other jobs continue
