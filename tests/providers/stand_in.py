"""A program in place of a provider's, which does what its first argument, a JSON object, says.

It imports nothing of the project but the contract, as a provider's program does.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from evaluation.providers.adapters.contract import served

WORDS = "the cat sat on a mat while dogs ran far over green hills under blue skies".split()


def documents(count: int, chat: bool, gold: str, quoted: str) -> list[dict[str, Any]]:
    found = []
    for number in range(count):
        text = f"Q: {WORDS[number]} A:"
        found.append(
            {
                "id": f"sums/{number}",
                "part": "sums" if number % 2 else "products",
                "prompt": None if chat else text,
                "messages": [{"role": "user", "content": text}] if chat else None,
                "document": {"part": "sums", "doc": {"letter": "a", "texts": [quoted]}},
                "gold": gold,
            }
        )
    return found


def questions(count: int, verb: str) -> list[dict[str, Any]]:
    return [
        {
            "id": f"quiz/{number}",
            "part": "words" if number % 2 else "things",
            "choices": [
                [f"the {WORDS[number]} {verb}", f" {word}"] for word in ("on", "over", "ran")
            ],
            "unconditional": [["Answer:", f" {word}"] for word in ("on", "over", "ran")],
            "right": number % 3,
            "fields": {"passage": f"passage {number // 3}", "metadata": {"story_id": number // 4}},
        }
        for number in range(count)
    ]


def give_up(act: str | None, folder: Path, last_words: str) -> None:
    """Ends the program, if that is the act."""
    if act == "refuse":
        (folder / "refused.json").write_text('{"sentence": "humaneval is not taken"}')
        sys.exit(3)
    if act == "die":
        print(last_words, file=sys.stderr)
        sys.exit(1)


def render(folder: Path, asked: dict[str, Any], does: dict[str, Any]) -> None:
    act = does.get("render")
    give_up(act, folder, "no such thing as a task")
    if act == "hang":
        time.sleep(600)
    if act == "nothing":
        return
    lines = documents(
        does.get("documents", 12), asked["chat"], does.get("gold", "a"), does.get("quoted", "b")
    )
    if asked["kind"] == "choices":
        lines = [
            {**line, **does.get("question", {})} for line in questions(12, does.get("verb", "sat"))
        ]
    lines = lines[: asked["limit"]]
    text = "\n".join(map(json.dumps, lines))
    (folder / "documents.jsonl").write_text("{" if act == "nonsense" else text)
    meta = {
        "version": "0.4.13",
        "kind": asked["kind"],
        "stop": ["Question:"],
        "max_new_tokens": 6,
        "num_fewshot": {"sums": 2, "products": 2},
        "metrics": {"exact": True, "length": False},
        "datasets": {"made/sums": "hub"},
        "read": [],
        "documents": 12,
    }
    (folder / "meta.json").write_text(json.dumps({**meta, **does.get("meta", {})}))


def score(folder: Path, does: dict[str, Any]) -> None:
    act = does.get("score")
    give_up(act, folder, "no module named anything")
    with open(folder / "scores.jsonl", "w", buffering=1) as file:
        if act == "nonsense":
            file.write("hello\n")
            return
        file.write(json.dumps({"ready": True, "version": does.get("version", "0.4.13")}) + "\n")
        with open(folder / "cases.jsonl") as cases:
            for case in map(json.loads, cases):
                file.write(json.dumps({"number": case["number"], **outcome(case)}) + "\n")
    if "count" in does:
        with open(does["count"], "a") as counted:
            counted.write("once\n")


def outcome(case: dict[str, Any]) -> dict[str, Any]:
    text, letter = case["completion"], case["document"]["doc"]["letter"]
    if text == "die":
        os._exit(9)
    if text == "memory":
        os._exit(77)
    if text == "hang":
        time.sleep(600)
    if text == "fail":
        return {"error": "ValueError: no number"}
    if text == "nonsense":
        return {"scores": 5}
    if text == "none":
        return {"scores": {}}
    right = float(text.strip()[:1] == letter)
    share = [right, 1.0] if text != "out of range" else 45.0
    return {"scores": {"exact": right, "shares": share, "length": float(len(text))}}


if __name__ == "__main__":
    what, (verb, place) = json.loads(sys.argv[1]), served(())
    request = json.loads((Path(place) / "request.json").read_text())
    if verb == "render":
        render(Path(place), request, what)
    elif verb == "score":
        score(Path(place), what)
