"""Histories that once went wrong: each is a sequence of actions as `history` plays them."""

from tests.histories.beginning import SAMPLED
from tests.histories.history import Action
from tests.workflow.world import LAST_LETTER

RUN: Action = ["run", "all"]
LETTERS = [*"abcdefghijklmnopqrstuvwxyz"]
CLEAN, UPPER = {"check": "no_chat_artifacts"}, {"check": "letter_case", "case": "upper"}
SHARED = ["told", "--set-resources", "score_stage1:checkpoints=2", "score_stage2:checkpoints=2"]

HISTORIES: dict[str, list[Action]] = {
    "another dtype scores steps and bridge again, and prefills nothing": [
        RUN,
        ["dtype", "bfloat16"],
        ["run_leaves", "cache"],
    ],
    "a protocol raised before its results are made again": [
        RUN,
        ["protocol_raised", "tier3"],
        RUN,
        ["protocol_raised", "BRIDGE"],
        RUN,
        ["protocol_raised", "REPORT"],
    ],
    "a protocol concerns only stages that have its tier": [
        RUN,
        ["protocol_raised", "tier4"],
        ["run_leaves", "results/stage1", "cache"],
    ],
    "a bridge that is not there is refused, with results there": [
        RUN,
        ["bridge_not_there", "stage2", {"stage": "stage1", "step": 77}],
        RUN,
        ["bridge_not_there", "stage2", {"path": "/WORLD/ckpts/side/8"}],
        RUN,
        ["repaired"],
    ],
    "a step that is not there is refused, with results there": [
        RUN,
        ["step_not_there", "stage1", 99],
        RUN,
        ["step_not_there", "stage2", 98],
        RUN,
        ["repaired"],
    ],
    "one broken checkpoint among several, never scored": [
        ["checkpoint_damaged", "two/5", "truncated"],
        RUN,
        ["checkpoint_damaged", "one/10", "no_shard"],
    ],
    "one broken checkpoint among several, scored before it broke": [
        RUN,
        ["checkpoint_damaged", "two/5", "half_config"],
        RUN,
        ["checkpoint_replaced", "two/15", 0, False],
    ],
    "a step of all is deleted after it was scored": [
        RUN,
        ["checkpoint_deleted", "two/5"],
        RUN,
        ["margin", "stage2", 0, 0.01],
    ],
    "a step of all is deleted and comes back as another": [
        RUN,
        ["checkpoint_deleted", "two/15"],
        RUN,
        ["checkpoint_added", "two/15", 5, False],
    ],
    "a step of all is deleted, then more is asked": [
        RUN,
        ["checkpoint_deleted", "two/5"],
        RUN,
        ["task_limit", "base", "quiz", 8],
    ],
    "a step of all loses its configuration": [
        RUN,
        ["checkpoint_damaged", "two/5", "no_config"],
        RUN,
    ],
    "a bridge that breaks, and is restored as it was": [
        RUN,
        ["checkpoint_damaged", "one/20", "truncated"],
        RUN,
        ["checkpoint_restored", "one/20"],
    ],
    "groups and primary metrics are views": [
        RUN,
        ["slice_group", "base", "text", "hq"],
        ["run_leaves", "cache"],
        ["task_primary", "base", "quiz", "per_char"],
        ["task_group", "base", "quiz", "hard"],
        ["run_leaves", "cache"],
        ["margin", "stage2", 0, 0.01],
        ["run_leaves", "cache", "results/stage1"],
    ],
    "one probe more, another check, another category": [
        RUN,
        ["item_added", "sft", "probes", "river"],
        RUN,
        ["probe_checks", "sft", "tree", [UPPER]],
        ["run_leaves", "cache", "results/stage1"],
        ["probe_category", "sft", "colour", "polite"],
        ["run_leaves", "cache", "results/stage1"],
    ],
    "a broken checkpoint holds back nothing of those in its job": [
        SHARED,
        ["checkpoint_damaged", "one/10", "truncated"],
        RUN,
        ["checkpoint_restored", "one/10"],
        RUN,
        ["checkpoint_damaged", "two/15", "half_config"],
    ],
    "an edited suite, and Snakemake remembers nothing": [
        RUN,
        ["task_limit", "base", "quiz", 8],
        ["snakemake_forgets", 0],
        RUN,
        ["task_limit", "base", "quiz", None],
        ["snakemake_forgets", 0],
    ],
    "results of a bridge and of a step are removed": [
        RUN,
        ["bridge_results_removed", 0],
        RUN,
        ["step_results_removed", 1],
        RUN,
        ["step_results_removed", 3],
        ["snakemake_forgets", 0],
    ],
    "a stage without its bridge, then without its step": [
        RUN,
        ["bridge", "stage2", None],
        RUN,
        ["steps", "stage2", [15]],
        RUN,
        ["stage_removed", "stage2"],
    ],
    "another bridge of the same stage, then of a path": [
        RUN,
        ["bridge", "stage2", {"stage": "stage1", "step": 10}],
        RUN,
        ["bridge", "stage2", {"path": "/WORLD/ckpts/side/7"}],
        RUN,
        ["bridge", "stage2", {"stage": "stage1"}],
    ],
    "other stops, verifiers and numbers of answers": [
        RUN,
        ["answers_stop", "sft", "sums", LETTERS],
        ["answers_stop", "sft", "words", LETTERS],
        ["run_leaves", "cache", "results/stage1"],
        ["answers_stop", "sft", "sums", None],
        ["answers_stop", "sft", "words", ["e"]],
        ["run_leaves", "cache", "results/stage1"],
        ["answers_sampling", "sft", "sums", {**SAMPLED, "n": 4}],
        ["answers_verifiers", "sft", "words", {"loose": LAST_LETTER}],
        RUN,
        ["answers_sampling", "sft", "sums", SAMPLED],
        ["answers_primary", "sft", "sums", "lenient"],
        ["run_leaves", "cache", "results/stage1"],
        ["protocol_raised", "tier5"],
        ["run_leaves", "cache", "results/stage1"],
        ["killed", 9],
        ["answers_document", "sft", "words", {"gold": "'b'"}],
        ["answers_strata", "sft", "sums", {"label": "{{ label }}"}],
    ],
    "killed and stopped on the way": [
        ["killed", 3],
        ["killed", 14],
        ["stopped", 9],
        ["checkpoint_replaced", "one/20", 4, True],
        ["killed", 12],
    ],
}

REAL: list[Action] = [
    RUN,
    ["dtype", "bfloat16"],
    ["killed", 7],
    ["item_added", "sft", "probes", "river"],
    ["checkpoint_replaced", "one/20", 4, True],
    RUN,
    ["task_primary", "base", "quiz", "per_char"],
    ["probe_checks", "sft", "tree", [UPPER]],
]
"""Played with the real engine on tiny models, not with the one that stands in for it."""
