"""A provider's program for tests, which does what its first argument, a JSON object, says."""

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

from evaluation.providers.adapters import contract
from evaluation.providers.adapters.contract import RefusedTask, TaskPart

WORDS = "the cat sat on a mat while dogs ran far over green hills under blue skies".split()

PARTS = ("sums", "products")
RENDERED = vars(contract)["_rendered"]

does = json.loads(sys.argv[1])


def documents(chat: bool) -> list[dict[str, Any]]:
    found = []
    for number in range(does.get("documents", 12)):
        text = f"Q: {WORDS[number]} A:"
        found.append(
            {
                "id": f"sums/{number}",
                "part": "sums" if number % 2 else "products",
                "prompt": None if chat else text,
                "messages": [{"role": "user", "content": text}] if chat else None,
                "document": {"letter": "a", "texts": [does.get("quoted", "b")]},
                "gold": does.get("gold", "a"),
            }
        )
    return found


def questions() -> list[dict[str, Any]]:
    return [
        {
            "id": f"quiz/{number}",
            "part": "words" if number % 2 else "things",
            "choices": [
                [f"the {WORDS[number]} {does.get('verb', 'sat')}", f" {word}"]
                for word in ("on", "over", "ran")
            ],
            "unconditional": [["Answer:", f" {word}"] for word in ("on", "over", "ran")],
            "right": number % 3,
            "fields": {"passage": f"passage {number // 3}"},
            **does.get("question", {}),
        }
        for number in range(12)
    ]


def give_up(act: str | None) -> None:
    """Ends the program, if that is the act."""
    if act == "refuse":
        raise RefusedTask("humaneval is not taken")
    if act == "die":
        print("no such thing as a task", file=sys.stderr)
        sys.exit(1)
    if act == "hang":
        time.sleep(600)
    if act == "nothing":
        sys.exit()


def parts(request: dict[str, Any]) -> list[TaskPart]:
    give_up(does.get("render"))
    lines = questions() if request["kind"] == "choices" else documents(request["chat"])
    metrics, shown = {"exact": True, "length": False}, lines[: request["limit"]]
    return [
        TaskPart(name, ["Question:"], 6, 2, metrics, shown * (name == "sums"), 6) for name in PARTS
    ]


def rendered(*arguments: Any) -> Iterator[dict[str, Any]]:
    for found in RENDERED(*arguments):
        yield found | {"info": found["info"] | does.get("meta", {})}


def scorer(request: dict[str, Any]) -> contract.Score:
    give_up(does.get("score"))
    if "count" in does:
        with open(does["count"], "a") as counted:
            counted.write("once\n")
    return score


def score(document: dict[str, Any], completion: str) -> dict[str, Any]:
    document["written"] = True
    if completion == "die":
        os._exit(9)
    if completion == "memory":
        bytearray(10**11)
    if completion == "hang":  # in native code, which no exception interrupts
        re.match("(a+)+$", "a" * 50 + "b")
    if completion == "fail":
        raise ValueError("no number")
    if completion == "none":
        return {}
    right = completion.strip()[:1] == document["letter"]
    share: Any = 45.0 if completion == "out of range" else (right, True)
    return {"exact": right, "shares": share, "length": len(completion), "other": {1}}


if __name__ == "__main__":
    sys.argv = sys.argv[-3:]
    vars(contract)["_rendered"] = rendered
    vars(contract)["version"] = lambda _: does.get("version", "0.4.13")
    contract.main("lm_eval", parts, scorer)
