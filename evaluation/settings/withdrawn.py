"""What earlier versions had: each name is refused with a sentence on what to do instead."""

from typing import Literal

Kind = Literal["key", "value", "command", "option"]

_TABLE: dict[Kind, dict[str, str]] = {
    "key": {
        "notify": "write `snakemake …; mail …`, or --mail-type into the profile",
        "also": "no mean holds several tiers; make a group and an objective of each tier",
        "greedy": "no mean holds several tiers; make a group of the tasks with choices alone",
        "olmo_eval olmo_eval_suites": "run olmo-eval by `command:` in its own stage",
        "python": "run BigCodeBench or DS-1000 by `command:` in a stage of its own",
        "gpus_per_checkpoint": "a model has one GPU; score a larger one by a `command`",
        "cuda_graphs": "leave it out: steps are launched; for many completions use vLLM",
        "processes": "a checkpoint has one GPU; for many completions set `engine: vllm`",
        "average": "read the recipe's interval, which has the noise between checkpoints",
        "merges": "write the mean with `merge`, and list its folder in `checkpoints`",
        "weights_and_biases": "set wandb's own variables WANDB_PROJECT and WANDB_NAME",
        "trained_from": "leave it out: checkpoints tell the tokens of training before them",
        "listed": "start the run again, which writes the list into `checkpoints`",
        "patterns": "name Python's words and signs in `texts`, such as `max(` or `for`",
        "seed": "shuffle the file of a slice before; `skip_documents` sets where it begins",
        "check_texts": "compare the ids in self_check.json beside the cached tokenizer",
        "include_path": "add your tasks to the harness's own environment, or run it by `command:`",
    },
    "value": {
        "olmo_eval ruler": "run olmo-eval by `command:` in a stage of its own",
        "olmobase_easy olmobase_fim olmobase_main": "run olmo-eval by `command:` in its own stage",
        "every-eval-ever": "read summary.csv, and the samples in generation/TASK/results.jsonl",
        "hf-eval-results": "write `.eval_results/*.yaml` with the values of summary.csv",
        "lm-eval": "read summary.csv, and the samples in generation/TASK/results.jsonl",
        "number mathematics": "take `pattern` as `gsm8k` has, or `math_verify`",
        "pass_rate_number pass_rate_mathematics": "name `pass_rate`, that of the primary verifier",
        "gold_margin brier_score calibration_error": "name `gold_bits_per_byte` or another",
        "token_accuracy z_loss": "leave it out: losses decide tier2",
        "contains_any": "write `contains` with a list of the texts in place of a text",
        "lacks_characters": "write `excludes` with `whole_words: false`",
        "states": "name what is right in `contains`, and what is wrong in `excludes`",
        "item_words": "give `list_items` the setting `most_words`",
        "numbers_in_order": "write `only_list` with `marker: numbers` and `start`",
        "sorted_items": "write `list_items`, with the texts in their order",
        "line_count": "count with `word_count`, `sentence_count` or a list's items",
        "plain_prose": "write `excludes` with signs of Markdown and `whole_words: false`",
        "no_preamble": "name the phrases in `excludes`, or write `starts_with`",
        "start": "write `how: contain`, or all of the item with `how: equal`",
        "defines": "write `passes_tests`, which calls the function with its arguments' names",
        "code_is code_has": "write `passes_tests`, and what must be there in `contains`",
        "code_lines": "write `definitions_only`, or what may not be there in `code_lacks`",
    },
    "command": {
        "tables figures deltas": "run `report --stage STAGE`, which makes all that shows a stage",
        "front-page comparison": "run `report`, which compares with `runs`, too",
        "curriculum": "take ids by the credits in generation/TASK/results.jsonl",
        "import-completions": "set `engine: vllm`, or write results by a stage's `command`",
        "verify-answers": "read the verdicts in generation/TASK/results.jsonl",
        "view": "write `show` in a terminal, or `export --format inspect` for `inspect view`",
        "completion": "`shtab` and `argcomplete` complete any program that uses argparse",
        "import-hf": "list the Hugging Face folder in `checkpoints` as it is",
    },
    "option": {
        "--give-up": "stop the watcher, or run it with --once by cron",
        "--cluster": "edit slurm_profile/, which `init` writes",
        "--objective": "write `objective` into the stage in config/config.yaml",
        "--text": "write a slice with `files` into a suite (config/README.md)",
        "--hub-task": "write `.eval_results/*.yaml` with the values of summary.csv",
        "--at-step --at-tokens --last": "name the results of two checkpoints",
        "--scores-only": "leave it out: `collect` makes the results",
        "--quiet": "leave it out, or give `--quiet rules` to Snakemake, behind `--`",
        "--organization": "write the values of summary.csv into the file's own form",
        "--merge": "write the mean with the command `merge`, and list it as a step",
        "--checkpoint": "write `--step STEP` or `--bridge`",
    },
}
"""The sentences by names: keys of configuration or suite, values of such a key (kinds of verifiers,
formats, suites), commands, options."""

WITHDRAWN = {
    (kind, name): words
    for kind, table in _TABLE.items()
    for names, words in table.items()
    for name in names.split()
}


def instead(kind: Kind, name: str) -> str | None:
    """Return the sentence for a name that an earlier version had, or None."""
    sentence = WITHDRAWN.get((kind, name))
    return f"no longer exists: {sentence}" if sentence else None
