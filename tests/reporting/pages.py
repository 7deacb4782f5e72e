"""What a page holds."""

import json
import re
from pathlib import Path
from typing import Any

STEPS = (10, 20, 30)


def page_data(page: Path) -> dict[str, Any]:
    """What a page draws from."""
    found = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    content: dict[str, Any] = json.loads(found[1])
    return content
