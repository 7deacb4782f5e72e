"""Runs the command line once a line of stdin, each time in a fresh fork of a warm process.

Importing the model's libraries takes longer than to score a tiny model. Writes the pid of every
fork, and its exit code when it has ended (negative: the signal that killed it).
"""

import os
import sys

import datasets  # noqa: F401
import pyarrow.parquet  # noqa: F401
import torch  # noqa: F401
import transformers  # noqa: F401
from transformers import LlamaForCausalLM  # noqa: F401

import evaluation.scoring.job  # noqa: F401
from evaluation.__main__ import main


def serve() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            code = 70
            try:
                code = main(line.split())
            finally:
                sys.stderr.flush()
                os._exit(code)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve()
