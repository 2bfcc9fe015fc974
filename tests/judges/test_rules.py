"""WebArena's rules for strings and URLs, in both dialects."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judges.rules import RULE_SETS, WEBARENA, WEBARENA_LITE, RuleError
from judges.tokens import tokens


def test_rule_sets_are_named_and_versioned():
    assert {name: rules.label for name, rules in RULE_SETS.items()} == {
        "webarena": "webarena/3",
        "webarena_lite": "webarena_lite/3",
        "webarena_lite_browsergym": "webarena_lite_browsergym/2",
    }
    assert RULE_SETS["webarena"] is WEBARENA


@pytest.mark.parametrize(
    ("answer", "cleaned"),
    [("  Yes ", "yes"), ("'N/A'", "n/a"), ('"Two Words"', "two words"), ("'open", "'open"), ("'", ""), ("", "")],
)
def test_answers_are_stripped_unquoted_and_lowered(answer, cleaned):
    assert WEBARENA.clean(answer) == cleaned


def test_only_webarena_strips_white_space():
    assert WEBARENA.exact_match("yes", " Yes\n")
    assert not WEBARENA_LITE.exact_match("yes", " Yes\n")
    assert WEBARENA_LITE.exact_match("Yes", "'yes'")


@pytest.mark.parametrize(
    ("reference", "answer", "webarena", "lite"),
    [
        ("0", "It took 10 days", False, False),
        ("0", "There are 0 reviews.", True, True),
        ("5", "$5.00", False, False),
        # A longer single token is a plain substring for WebArena and a whole token for the overlay.
        ("12", "312 points", True, False),
        ("12", "It costs 12.", True, True),
        ("art", "the party", True, False),
        ("blue kettle", "a BLUE kettle, please", True, True),
        ("blue kettle", "blue steel kettle", False, False),
    ],
)
def test_a_lone_short_reference_must_be_a_token_of_its_own(reference, answer, webarena, lite):
    assert WEBARENA.answer_includes(reference, answer, only=True) is webarena
    assert WEBARENA_LITE.answer_includes(reference, answer, only=True) is lite


IMAGE = "bd8bc5f4c846aac4df08626faa3a34a7d47c8f3bdd92bf615a54afd939f063a7.jpg"


@pytest.mark.parametrize(
    ("reference", "found", "included"),
    [
        # WebArena-Lite's test task 619 and training tasks 615 to 618: an image's name in the links of a post.
        (IMAGE, f"/f/funny /submission_images/{IMAGE} /user/MarvelsGrantMan136", True),
        (IMAGE, f"/submission_images/x{IMAGE}", False),
        # Task 169.
        ("a11yproject.com", "a11yproject/a11yproject.com, primer/design", True),
        ("design", "a11yproject/a11yproject.com, primer/design", True),
        ("design", "a11yproject/a11yproject.com, primer/designs", False),
        # Task 682.
        ("chatgpt", "Interesting: __GITLAB__/convexegg/chatgpt", True),
        ("chatgpt", "Interesting: __GITLAB__/convexegg/chatgpt-api", False),
        ("3/4", "about 3/4 of it", True),
        ("4", "about 3/4 of it", True),
        ("4", "about 3/14 of it", False),
    ],
)
def test_what_stands_between_slashes_is_a_word_for_the_overlay_too(reference, found, included):
    assert WEBARENA_LITE.page_includes(reference, found) is included
    assert WEBARENA_LITE.answer_includes(reference, found, only=True) is included


def test_what_is_excluded_is_not_looked_for_between_slashes():
    assert WEBARENA_LITE.must_exclude("design", "primer/design")
    assert not WEBARENA_LITE.must_exclude("primer/design", "primer/design")


@given(st.text("ab5.-' /n,:", max_size=30), st.text("ab5.-/", min_size=1, max_size=4))
def test_a_word_is_included_as_a_token_or_as_a_part_of_one_and_excluded_as_a_token(found, reference):
    words = tokens(WEBARENA_LITE.clean(found))
    parts = "/".join(words).split("/")
    if tokens(reference) == [reference]:
        included = reference in words or reference in parts
        assert WEBARENA_LITE.must_include(reference, found, whole_token=True) is included
        assert WEBARENA_LITE.must_exclude(reference, found) is (reference not in words)


@pytest.mark.parametrize("rules", RULE_SETS.values(), ids=RULE_SETS)
@pytest.mark.parametrize(
    "found",
    [
        # The README of WebArena-Lite's task 566, with the links in the forms that an agent may give them.
        "__REDDIT__/f/DIY/118903/separate-glued-plastic-parts",
        "1. [Parts](__REDDIT__/f/DIY/118903/separate-glued-plastic-parts/)",
        "__REDDIT__/f/DIY/118903/separate-glued-plastic-parts?sort=new",
    ],
)
def test_an_address_is_included_as_a_part_of_another_one_as_the_real_one_would_be(found, rules):
    address = "__REDDIT__/f/DIY/118903/separate-glued-plastic-parts"
    assert rules.page_includes(address, found)
    assert not rules.must_exclude(address, found)


def test_webarena_relaxes_the_token_rule_when_there_are_several_references():
    assert WEBARENA.answer_includes("0", "10 and 20", only=False)
    assert not WEBARENA_LITE.answer_includes("0", "10 and 20", only=False)


def test_alternatives_in_answers_are_the_overlays_only():
    assert WEBARENA_LITE.answer_includes("red |OR| blue", "blue", only=True)
    assert not WEBARENA.answer_includes("red |OR| blue", "blue", only=True)


def test_alternatives_in_pages_are_known_to_both():
    assert WEBARENA.page_includes("red |OR| blue", "<b>blueish</b>")
    assert not WEBARENA_LITE.page_includes("red |OR| blue", "<b>blueish</b>")
    assert WEBARENA_LITE.page_includes("red |OR| blue", "a blue thing")


@pytest.mark.parametrize(
    ("reference", "found", "matches"),
    [
        ("__SHOP__/cart", "__SHOP__/cart/", True),
        ("__SHOP__/cart/", "__SHOP__/cart", True),
        ("__SHOP__/cart", "__SHOP__/cart/checkout", True),
        ("__SHOP__/result/?q=tea", "__SHOP__/result/index/?q=tea", True),
        ("__SHOP__/result/?q=tea", "__SHOP__/result?q=tea", False),
        ("__SHOP__/cart", "__FORUM__/cart", False),
        ("__SHOP__/cart", "__SHOP__/category", False),
        ("__SHOP__/search?q=tea", "__SHOP__/search?page=2&q=tea", True),
        ("__SHOP__/search?q=tea", "__SHOP__/search?q=teapot", False),
        ("__SHOP__/search?q=tea", "__SHOP__/search", False),
        ("__SHOP__/search?q=green+tea", "__SHOP__/search?q=green%20tea", True),
        ("__SHOP__/a |OR| __SHOP__/b", "__SHOP__/b", True),
        ("__SHOP__/a |OR| __SHOP__/b", "__SHOP__/c", False),
        # Alternatives' values for one key are pooled, as WebArena pools them.
        ("__SHOP__/s?q=a |OR| __SHOP__/s?q=b", "__SHOP__/s?q=b", True),
        ("__SHOP__/s?q=a |OR| __SHOP__/s?q=b", "__SHOP__/s?q=c", False),
        ("http://shop.x/a?k=1", "http://shop.x/a?k=1#top", True),
    ],
)
def test_gold_in_pred_compares_address_and_query_apart(reference, found, matches):
    assert WEBARENA.url_match(reference, found, "GOLD in PRED") is matches
    assert WEBARENA.url_match(reference, found, None) is matches


def test_exact_urls():
    assert WEBARENA.url_match("__SHOP__/cart", "__SHOP__/cart/", "EXACT")
    assert not WEBARENA.url_match("__SHOP__/cart", "__SHOP__/cart/checkout", "EXACT")
    # The overlay takes EXACT where a task says nothing.
    assert not WEBARENA_LITE.url_match("__SHOP__/cart", "__SHOP__/cart/checkout", None)
    assert WEBARENA_LITE.url_match("__SHOP__/cart", "__SHOP__/cart/checkout", "GOLD in PRED")
    assert not WEBARENA_LITE.url_match("__SHOP__/s?a=1&b=2", "__SHOP__/s?b=2&a=1", "GOLD in PRED")


def test_the_overlay_ignores_one_closing_slash_and_webarena_all():
    assert WEBARENA.url_match("__SHOP__/cart", "__SHOP__/cart//", "EXACT")
    assert WEBARENA_LITE.url_match("__SHOP__/cart/", "__SHOP__/cart", "EXACT")
    assert not WEBARENA_LITE.url_match("__SHOP__/cart", "__SHOP__/cart//", "EXACT")


def test_an_unknown_note_is_refused():
    with pytest.raises(RuleError, match="expected 'GOLD in PRED' or 'EXACT', found 'PRED in GOLD'"):
        WEBARENA.url_match("__SHOP__/", "__SHOP__/", "PRED in GOLD")


@given(st.text(max_size=30), st.text(max_size=10), st.sampled_from(list(RULE_SETS.values())))
def test_every_text_matches_itself_and_includes_its_parts(text, more, rules):
    assert rules.exact_match(text, text)
    assert rules.must_include(text, text, whole_token=False)
    assert rules.must_include("kettle", f"{more} kettle", whole_token=True)


@pytest.mark.parametrize(
    ("reference", "found", "excluded"),
    [("red", "a redish cup", True), ("red", "a red cup", False), ("red cup", "a red cups", False), ("", "x", False)],
)
def test_the_overlay_excludes_whole_words_and_parts_of_longer_texts(reference, found, excluded):
    assert WEBARENA_LITE.must_exclude(reference, found) is excluded


def test_webarena_excludes_parts_of_words():
    assert not WEBARENA.must_exclude("red", "a redish cup")
    assert WEBARENA.must_exclude("3", "30")


def test_one_of_several_references_is_enough():
    assert WEBARENA_LITE.one_of(["'Red'", "blue"], "a Reddish cup")
    assert not WEBARENA_LITE.one_of(["red", "blue"], "green")


@pytest.mark.parametrize(
    ("inequalities", "found", "met"),
    [
        (">= 300", "300", True),
        ("> 300", "300", False),
        ("< 300", "300", False),
        ("<= 1200", " 1,200 ", True),
        ("== 5", "'5'", False),
        ("== 5.5", "5", False),
        ("> -3", "-2", True),
        ("< 3 |OR| > 9", "10", True),
        ("< 3 |OR| > 9", "5", False),
        ("> 0", "5.0", False),
        ("> 0", "$5", False),
        ("> 0", "", False),
        ("> 0", "1_000", False),
    ],
)
def test_a_required_value_is_a_whole_number_that_meets_one_of_the_inequalities(inequalities, found, met):
    assert WEBARENA_LITE.required_value(inequalities, found) is met


@pytest.mark.parametrize("inequality", ["300", "=> 300", ">= many", "> 1 > 2", ""])
def test_what_is_no_inequality_is_refused_whatever_was_found(inequality):
    for found in ("1", "none"):
        with pytest.raises(RuleError, match="expected an inequality such as '>= 300'"):
            WEBARENA_LITE.required_value(inequality, found)
