"""The data export of ChatGPT: trees of messages, and their copy in a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.real.json_sites import FERN, JsonSite, ids, phrases

PAGE = "<html><body><script>\nvar jsonData = {};\nvar assetsJson = {{}};\n</script></body></html>\n"


def _node(name: str, parent: str | None, children: list[str], parts: Any) -> dict[str, Any]:
    message = None
    if parts is not None:
        content = {"content_type": "text", "parts": parts}
        message = {"id": name, "content": content, "create_time": 1767000000.25, "metadata": {}}
    return {"id": name, "message": message, "parent": parent, "children": children}


def _conversations() -> list[dict[str, Any]]:
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"}
    nodes = [
        _node("root", None, ["hidden"], None),
        _node("hidden", "root", ["ask"], [""]),
        _node("ask", "hidden", ["dead", "answer"], [f"Where is it? I think {FERN}."]),
        _node("dead", "ask", [], [f"A rejected answer: {FERN}."]),
        _node("answer", "ask", ["show"], ["Noted."]),
        _node("show", "answer", ["last"], [picture, f"On this: {FERN}"]),
        _node("last", "show", [], [f"So {FERN}."]),
    ]
    mapping = {node["id"]: node for node in nodes}
    mapping["hidden"]["message"]["metadata"] = {
        "user_context_message_data": {"about_user_message": FERN, "about_model_message": "Short."}
    }
    return [
        {
            "title": f"Whether {FERN}",
            "create_time": 1767000000.1,
            "mapping": mapping,
            "current_node": "last",
            "conversation_id": "conversation-one",
            "id": "conversation-one",
        },
        {
            "title": "Other",
            "mapping": {
                "first": _node("first", None, ["near"], None),
                "near": _node("near", "first", [], [f"{FERN}work"]),
            },
            "current_node": "near",
            "conversation_id": "conversation-two",
            "id": "conversation-two",
        },
    ]


@pytest.fixture
def site(tmp_path: Path) -> JsonSite:
    site = JsonSite(tmp_path, "chatgpt")
    conversations = json.dumps(_conversations())
    site.write("conversations.json", conversations)
    site.write("chat.html", PAGE.format(conversations))
    content = json.dumps({"text": f"wrong: {FERN}"})
    feedback = [
        {"id": "feedback-1", "conversation_id": "conversation-one", "content": content},
        {"id": "feedback-2", "conversation_id": "conversation-one", "content": "{}"},
        {"id": "feedback-3", "conversation_id": "conversation-two", "content": "{}"},
    ]
    site.write("message_feedback.json", feedback)
    shared = {"id": "shared-1", "conversation_id": "conversation-one", "title": FERN}
    site.write("shared_conversations.json", [shared])
    site.write("user.json", {"id": "user-1", "email": "orla@example.org"})
    return site


def _page(site: JsonSite) -> Any:
    text = (site.folder / "chat.html").read_text("utf-8")
    head, tail = PAGE.format("\0").replace("{}", "{}").split("\0")
    assert text.startswith(head)
    assert text.endswith(tail)
    return json.loads(text[len(head) : -len(tail)])


def _assert_whole(conversation: dict[str, Any]) -> None:
    """Every child is there and points back; the pointer leads somewhere; both ids are equal."""
    mapping = conversation["mapping"]
    assert conversation["current_node"] in mapping
    assert conversation["id"] == conversation["conversation_id"]
    for name, node in mapping.items():
        assert [mapping[child]["parent"] for child in node["children"]] == [name] * len(
            node["children"]
        )
        assert node["parent"] is None or name in mapping[node["parent"]]["children"]


def test_messages_go_and_the_tree_closes_over_them(site: JsonSite) -> None:
    site.purge(phrases(FERN))
    one, two = site.load("conversations.json")
    _assert_whole(one)
    assert {name: node["parent"] for name, node in one["mapping"].items()} == {
        "root": None,
        "hidden": "root",
        "answer": "hidden",
        "show": "answer",
    }
    assert one["current_node"] == "show"
    assert two == _conversations()[1]


def test_the_page_says_the_same_as_the_conversations(site: JsonSite) -> None:
    site.purge(phrases(FERN))
    assert _page(site) == site.load("conversations.json")


def test_a_part_goes_and_the_picture_beside_it_stays(site: JsonSite) -> None:
    site.purge(phrases(FERN))
    show = site.load("conversations.json")[0]["mapping"]["show"]["message"]["content"]["parts"]
    assert [part["content_type"] for part in show] == ["image_asset_pointer"]


def test_hidden_text_goes_and_what_stands_beside_it_stays(site: JsonSite) -> None:
    site.purge(phrases(FERN))
    hidden = site.load("conversations.json")[0]["mapping"]["hidden"]["message"]
    assert hidden["metadata"] == {"user_context_message_data": {"about_model_message": "Short."}}


def test_titles_are_emptied(site: JsonSite) -> None:
    site.purge(phrases(FERN))
    assert [it["title"] for it in site.load("conversations.json")] == ["", "Other"]
    assert [it["title"] for it in site.load("shared_conversations.json")] == [""]


def test_feedback_with_the_words_in_a_json_string_goes(site: JsonSite) -> None:
    site.purge(phrases(FERN))
    assert [it["id"] for it in site.load("message_feedback.json")] == ["feedback-2", "feedback-3"]


def test_a_conversation_that_is_named_goes_with_all_that_belongs_to_it(site: JsonSite) -> None:
    (match,) = site.purge(ids("conversation-one"))
    assert match.pieces == 2 * (1 + 7) + 2 + 1  # twice with its nodes, feedback, the shared link
    assert site.load("conversations.json") == _conversations()[1:] == _page(site)
    assert [it["id"] for it in site.load("message_feedback.json")] == ["feedback-3"]
    assert site.load("shared_conversations.json") == []


def test_words_in_the_page_outside_of_its_json_are_told_and_left(site: JsonSite) -> None:
    page = site.folder / "chat.html"
    page.write_text(page.read_text("utf-8").replace("<body>", f"<body><!-- {FERN} -->"), "utf-8")
    _, gaps = site.find(phrases(FERN))
    assert [(gap.where, gap.problem) for gap in gaps] == [("chat.html", "unsupported")]


def test_a_page_whose_json_is_cut_off_is_never_passed_over(site: JsonSite) -> None:
    page = site.folder / "chat.html"
    page.write_text(page.read_text("utf-8")[:600], "utf-8")
    _, gaps = site.find(phrases("nothing that stands anywhere"))
    assert [(gap.where, gap.problem) for gap in gaps] == [("chat.html", "corrupt")]
