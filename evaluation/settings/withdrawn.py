"""What earlier versions had: each name is refused with a sentence on what to do instead."""

from typing import Literal

Kind = Literal["key", "value", "command", "option"]

_TABLE: dict[tuple[Kind, str], str] = {
    ("key", "notify"): "write `snakemake …; mail …`, or --mail-type into the profile",
    ("option", "--give-up"): "stop the watcher, or run it with --once by cron",
    ("option", "--cluster"): "edit slurm_profile/, which `init` writes",
    ("option", "--objective"): "write `objective` into the stage in config/config.yaml",
    ("option", "--text"): "write a slice with `files` into a suite (config/README.md)",
    ("key", "also"): "no mean holds several tiers; make a group and an objective of each tier",
    ("key", "greedy"): "no mean holds several tiers; make a group of the tasks with choices alone",
    ("key", "olmo_eval olmo_eval_suites"): "run olmo-eval by `command:` in a stage of its own",
    ("key", "python"): "run BigCodeBench or DS-1000 by `command:` in a stage of its own",
    (
        "value",
        "olmo_eval olmobase_easy olmobase_fim olmobase_main ruler",
    ): "run olmo-eval by `command:` in a stage of its own",
    (
        "value",
        "every-eval-ever",
    ): "`every_eval_ever convert lm_eval` reads lm-evaluation-harness' files",
    ("value", "hf-eval-results"): "write `.eval_results/*.yaml` with the values of summary.csv",
    ("option", "--hub-task"): "write `.eval_results/*.yaml` with the values of summary.csv",
    ("value", "lm-eval"): "read summary.csv, and the samples in generation/TASK/results.jsonl",
    (
        "command",
        "tables figures deltas",
    ): "run `report --stage STAGE`, which makes all that shows a stage",
    ("command", "front-page comparison"): "run `report`, which compares with `runs`, too",
    ("command", "curriculum"): "take ids by the credits in generation/TASK/results.jsonl",
    ("value", "number mathematics"): "take `pattern` as `gsm8k` has, or `math_verify`",
    (
        "value",
        "pass_rate_number pass_rate_mathematics",
    ): "name `pass_rate`, that of the primary verifier",
    (
        "value",
        "gold_margin brier_score calibration_error",
    ): "name `gold_bits_per_byte` or another",
    ("value", "token_accuracy z_loss"): "leave it out: losses decide tier2",
    ("key", "gpus_per_checkpoint"): "a model has one GPU; score a larger one by a `command`",
    ("key", "cuda_graphs"): "leave it out: steps are launched; for many completions use vLLM",
    ("key", "processes"): "a checkpoint has one GPU; for many completions set `engine: vllm`",
    ("key", "average"): "read the recipe's interval, which has the noise between checkpoints",
    ("key", "merges"): "write the mean with `merge`, and list its folder in `checkpoints`",
    ("key", "weights_and_biases"): "set wandb's own variables WANDB_PROJECT and WANDB_NAME",
    ("key", "trained_from"): "leave it out: checkpoints tell the tokens of training before them",
    ("key", "listed"): "start the run again, which writes the list into `checkpoints`",
    ("option", "--at-step --at-tokens"): "name the results of two checkpoints",
    ("option", "--merge"): "write the mean with the command `merge`, and list it as a step",
    ("option", "--checkpoint"): "write `--step STEP` or `--bridge`",
    (
        "command",
        "import-completions",
    ): "set `engine: vllm`, or write results by a stage's `command`",
    ("command", "verify-answers"): "read the verdicts in generation/TASK/results.jsonl",
    (
        "command",
        "view",
    ): "write `show` in a terminal, or `export --format inspect` for `inspect view`",
    ("command", "completion"): "`shtab` and `argcomplete` complete any program that uses argparse",
    ("value", "contains_any"): "write `contains` with a list of the texts in place of a text",
    ("value", "lacks_characters"): "write `excludes` with `whole_words: false`",
    ("value", "states"): "name what is right in `contains`, and what is wrong in `excludes`",
    ("value", "item_words"): "give `list_items` the setting `most_words`",
    ("value", "numbers_in_order"): "write `only_list` with `marker: numbers` and `start`",
    ("value", "sorted_items"): "write `list_items`, with the texts in their order",
    ("value", "line_count"): "count with `word_count`, `sentence_count` or a list's items",
    ("value", "plain_prose"): "write `excludes` with signs of Markdown and `whole_words: false`",
    ("value", "no_preamble"): "name the phrases in `excludes`, or write `starts_with`",
    ("value", "start"): "write `how: contain`, or all of the item with `how: equal`",
    (
        "value",
        "defines",
    ): "write `passes_tests`, which calls the function with its arguments' names",
    ("value", "code_is code_has"): "write `passes_tests`, and what must be there in `contains`",
    ("value", "code_lines"): "write `definitions_only`, or what may not be there in `code_lacks`",
    ("key", "patterns"): "name Python's words and signs in `texts`, such as `max(` or `for`",
    ("key", "seed"): "shuffle the file of a slice before; `skip_documents` sets where it begins",
    ("key", "check_texts"): "compare the ids in self_check.json beside the cached tokenizer",
    (
        "key",
        "include_path",
    ): "add your tasks to the harness's own environment, or run it by `command:`",
    ("command", "import-hf"): "list the Hugging Face folder in `checkpoints` as it is",
}
"""The sentences, by what the names are: keys of configuration or suite, values of such a key (kinds of
verifiers, formats, suites), commands, options."""

WITHDRAWN = {
    (kind, name): words for (kind, names), words in _TABLE.items() for name in names.split()
}


def instead(kind: Kind, name: str) -> str | None:
    """Return the sentence for a name that an earlier version had, or None."""
    sentence = WITHDRAWN.get((kind, name))
    return f"no longer exists: {sentence}" if sentence else None
