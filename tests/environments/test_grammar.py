"""The action language: what it reads, what it refuses, and that it evaluates nothing."""

import builtins

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.interface.grammar import FORMS, KINDS, STYLES, GrammarError, format_action, parse
from records.environment import Action

texts = st.text(max_size=60)
comments = st.none() | texts.map(lambda t: " ".join(t.replace("\x00", " ").split())).map(lambda t: t or None)


@st.composite
def actions(draw: st.DrawFn) -> Action:
    kind = draw(st.sampled_from(KINDS))
    comment, note = draw(comments), draw(comments)
    if kind == "exit":
        return Action("exit", draw(texts), None, comment, note)
    if kind not in FORMS:
        return Action(kind, comment=comment, note=note)
    form = FORMS[kind]
    element = draw(st.integers(0, 999_999)) if form.element == "required" else None
    if form.element == "optional":
        element = draw(st.none() | st.integers(0, 999_999))
    argument = draw(texts) if form.argument == "required" else None
    if kind == "drag":
        argument = str(draw(st.integers(0, 999_999)))
    if form.argument == "optional":
        argument = draw(st.none() | st.text(min_size=1, max_size=20))
    return Action(kind, argument, element, comment, note)


@given(actions(), st.sampled_from(STYLES))
def test_reading_undoes_writing(action: Action, style: str) -> None:
    assert parse(format_action(action, style)) == action


@given(st.text() | st.binary(max_size=200).map(lambda b: b.decode("latin-1")) | st.text("do(exit)\"'=,#<>{}[]\n 0x9f"))
def test_any_text_is_an_action_or_a_one_line_refusal(text: str) -> None:
    try:
        told = parse(text).kind
    except GrammarError as error:
        told = str(error)
    assert told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('# Element: Add to cart\ndo(action="Click", element="5")', Action("click", None, 5, "Add to cart")),
        ('do(action="click", element=5)', Action("click", None, 5)),
        ("do('Type', 'blue mug', '3')", Action("type", "blue mug", 3)),
        ('do(action="Search", argument="x", element="3")', Action("search", "x", 3)),
        ('do(action="Select Dropdown Option", argument="Red", element="4")', Action("select", "Red", 4)),
        ('do(action="select_dropdown_option", argument="Red", element="4")', Action("select", "Red", 4)),
        ('do(action="Scroll Down", argument="", element="")', Action("scroll_down")),
        ('do(action="Press Enter", element=None)', Action("press_enter")),
        ('do(action="Right Click", element="2")', Action("right_click", None, 2)),
        ('do(action="Wait")', Action("wait")),
        ('do(action="Wait", argument=2)', Action("wait", "2")),
        ('do(action="Switch Tab", argument="1")', Action("switch_tab", "1")),
        ("go_backward()", Action("go_backward")),
        ("# Note: nothing here\ngo_forward()", Action("go_forward", note="nothing here")),
        (
            '# Element: map\n# Note: $3.50\ndo(action="Click", element="0")',
            Action("click", None, 0, "map", "$3.50"),
        ),
        ("# Note: opened 1921\n# note:  by rail\ngo_backward()", Action("go_backward", note="opened 1921 by rail")),
        ('exit(message="$3.50")', Action("exit", "$3.50")),
        ('exit("done")', Action("exit", "done")),
        ("exit()", Action("exit", "")),
        ('<think>do(action="Wait")?</think>\n<answer>\nexit(message="N/A")\n</answer>', Action("exit", "N/A")),
        ("half a thought</think><answer># Element: a\ngo_backward()</answer>", Action("go_backward", comment="a")),
        ('```python\ndo(action="Hover", element="1")\n```', Action("hover", None, 1)),
        (
            'do(action="Type", argument="a</answer>b # Note: c", element="0")',
            Action("type", "a</answer>b # Note: c", 0),
        ),
    ],
)
def test_what_the_prompt_offers_is_read(text: str, expected: Action) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected one call"),
        ("click the red button", "expected one call"),
        ('do(action="Wait")\ndo(action="Wait")', "exactly one action; found 2"),
        ('do(action="Click")', "Click needs an element"),
        ('do(action="Type", element="3")', "Type needs an argument"),
        ('do(action="Click", argument="x", element="3")', "Click takes no argument"),
        ('do(action="Switch Tab", argument="1", element="3")', "Switch Tab takes no element"),
        ('do(action="Fly", element="3")', "the actions are Click"),
        ('do(action="Click", element="the button")', "number at the end of a line"),
        ('do(action="Click", element="-1")', "number at the end of a line"),
        ('do(action="Click", element=str(3))', "element must be a quoted text"),
        ('do(action=f"{1}", element="3")', "action must be a quoted text"),
        ('do(action="Click", element="3", speed="9")', "each once; found 'speed'"),
        ('do("Click", action="Click", element="3")', "each once; found 'action'"),
        ('do(**{"action": "Click"})', "each once; found '**'"),
        ("go_backward(1)", "at most 0 arguments"),
        ("open('/etc/passwd')", "found 'open'"),
        ("a.b.do(action='Wait')", "found 'a.b.do'"),
        ("x = do(action='Wait')", "expected one call"),
        ("(" * 5000, "expected one call"),
        ("-" * 7000 + "1", "expected one call"),
        ("exit(message=" + "0x" + "f" * 6000 + ")", "message must be a quoted text"),
        ("x" * 9000, "at most 8000 characters"),
        ("\u202e" * 500, "expected one call"),
        (f"exit({'x' * 5000}=1)", "each once; found 'xxx"),
    ],
)
def test_what_is_no_action_is_explained(text: str, says: str) -> None:
    with pytest.raises(GrammarError) as caught:
        parse(text)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_nothing_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    monkeypatch.setattr(builtins, "print", lambda *a, **k: called.append(a))
    for text in (
        "print('x')",
        "do(action=print('x'))",
        "exit(message=[print(i) for i in 'ab'])",
        "exit(message=(lambda: print(1))())",
    ):
        with pytest.raises(GrammarError):
            parse(text)
    assert called == []


def test_writing_refuses_what_the_grammar_lacks() -> None:
    with pytest.raises(ValueError, match="unknown action kind 'fly'"):
        format_action(Action("fly"))
    with pytest.raises(ValueError, match="unknown action style"):
        format_action(Action("wait"), style="prose")


@pytest.mark.parametrize(
    "deep",
    ["a" + ".a" * 1200 + "()", "f" + "()" * 900, "do(action=" + "-" * 900 + "1)", "do(action=a" + "[0]" * 900 + ")"],
)
def test_deeply_nested_text_is_refused_calmly(deep: str) -> None:
    with pytest.raises(GrammarError):
        parse(deep)
