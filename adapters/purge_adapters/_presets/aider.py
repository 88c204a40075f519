"""aider: the chat, the prompts that were typed, and the log of what went to the model.

``path`` is the folder in which aider was started. A line of the chat is read as aider reads it when
it restores one: ``#### `` is the user, ``> `` is aider itself, everything else is the model, code
fences or not. The prompts are in the form of prompt_toolkit's FileHistory.
"""

from __future__ import annotations

from typing import Any, Final

FILES: Final[dict[str, Any]] = {
    "aider": {
        "members": [
            {
                "adapter": "lines",
                "path": ".aider.chat.history.md",
                "time": "time",
                "passed_over": "# ",
                "kinds": {
                    "session": {
                        "begins": r"# aider chat started at (?P<time>.+)",
                        "single": True,
                        "markers": False,
                    },
                    "user": {
                        "each": "#### ",
                        "markdown": True,
                        "placeholder": "#### (removed)",
                    },
                    "tool": {
                        "each": "> ",
                        "markdown": True,
                        "markers": False,
                        "placeholder": "> (removed)",
                    },
                    "assistant": {
                        "markdown": True,
                        "markers": False,
                        "placeholder": "(removed)",
                    },
                },
            },
            {
                "adapter": "lines",
                "path": ".aider.input.history",
                "time": "time",
                "kinds": {
                    "prompt": {"begins": r"# (?P<time>\d{4}-\d\d-\d\d .+)$", "goes_on": r"\+"},
                    "rest": {},
                },
            },
            {
                "adapter": "lines",
                "path": ".aider.llm.history",
                "time": "time",
                "kinds": {
                    "exchange": {
                        "begins": r"(?:TO LLM|LLM RESPONSE) (?P<time>\d{4}-\d\d-\d\dT[\d:]+)$",
                        "markers": False,
                    },
                    "rest": {"markers": False},
                },
            },
        ],
        "others": [".aider*", ".aider*/**"],
    }
}
