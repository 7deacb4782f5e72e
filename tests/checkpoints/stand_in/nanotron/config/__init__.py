from dataclasses import dataclass


@dataclass
class ParallelismArgs:
    dp: int
    pp: int
    tp: int
