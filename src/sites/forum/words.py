"""The forum's vocabulary: what titles, bodies, comments, biographies and names are made of.

Owns word lists only. They are kept small on purpose, so that a model of about a million
parameters can learn to read every page, and they overlap on purpose, so that titles and user
names have siblings that are easily confused.
"""

from __future__ import annotations

FORUM_TOPICS: dict[str, tuple[str, ...]] = {
    "art": ("pencil", "canvas", "brush", "sketch", "clay"),
    "bikes": ("helmet", "saddle", "chain", "brake", "trail"),
    "books": ("novel", "poem", "library", "author", "cover"),
    "cars": ("engine", "tyre", "garage", "battery", "paint"),
    "coding": ("python", "website", "laptop", "editor", "keyboard"),
    "cooking": ("bread", "soup", "cake", "rice", "sauce"),
    "crafts": ("knitting", "wood", "sewing", "candle", "paper"),
    "fitness": ("running", "yoga", "weights", "stretching", "shoes"),
    "games": ("puzzle", "board", "chess", "level", "cards"),
    "garden": ("tomato", "rose", "lawn", "seeds", "compost"),
    "history": ("castle", "museum", "empire", "letter", "map"),
    "jobs": ("interview", "salary", "office", "resume", "boss"),
    "movies": ("actor", "cinema", "director", "trailer", "ending"),
    "music": ("guitar", "song", "album", "concert", "piano"),
    "pets": ("cat", "dog", "parrot", "hamster", "fish"),
    "photos": ("camera", "lens", "tripod", "portrait", "sunset"),
    "science": ("microscope", "lab", "atom", "magnet", "theory"),
    "space": ("moon", "rocket", "telescope", "planet", "comet"),
    "sports": ("football", "tennis", "swimming", "hockey", "golf"),
    "travel": ("train", "hotel", "island", "ticket", "passport"),
}
"""Forum name to the nouns its threads are about; a noun belongs to one forum."""

ADJECTIVES = ("Best", "Cheap", "First", "Old", "Small", "Strange")
KINDS = ("tips", "question", "review", "guide", "story", "advice")
SHARED_TITLES = ("Weekly question", "Welcome thread", "Beginner advice", "Show your work")
"""Titles that most forums have: only the forum tells such threads apart."""

USER_STEMS = (
    "amber", "anton", "bella", "boris", "carla", "cedric", "daisy", "diego", "elena", "emil",
    "fiona", "felix", "grace", "gustav", "hanna", "hugo", "ingrid", "ivan", "jasmin", "jonas",
    "karin", "kevin", "laura", "leon", "marta", "milo", "nadia", "nils", "olga", "oscar",
    "paula", "pablo", "quinn", "ralf", "rosa", "samir", "sofia", "tamara", "tobias", "ursula",
    "vera", "victor", "wanda", "walter", "xenia", "yara", "yusuf", "zara", "zeno", "iris",
)  # fmt: skip

OPENINGS = (
    "I need help with my {noun}.",
    "This is about my {noun}.",
    "I have a new {noun}.",
    "My old {noun} is gone.",
    "I love this {noun}.",
)
CLOSINGS = ("What do you think?", "Please share your ideas.", "Thanks for reading.", "Any tips?", "What do you use?")

COMMENTS = (
    "Thanks, this helped me.", "I do not agree.", "Good idea!", "Where did you find it?", "I had the same problem.",
    "Try it again next week.", "This made my day.", "How much was it?", "Please post a photo.", "Very useful, thanks.",
    "I would not do that.", "That is a good question.", "My friend told me the same.", "It works for me.",
    "Tell us more about it.", "I like the old one more.", "Too expensive for me.", "Nice story!",
    "I am new here as well.", "You should ask an expert.", "Keep up the good work.", "It never worked for me.",
)  # fmt: skip

BIO_LIKES = ("tea", "coffee", "hiking", "jazz", "summer", "winter", "dancing", "sailing", "skiing", "the sea")
BIO_PLACES = ("Lisbon", "Oslo", "Vienna", "Dublin", "Porto", "Bern", "Riga", "Athens", "Prague", "Madrid")

RANKS = {"newest": "new", "top": "top"}
"""What instructions call the first thread of a forum, and the order in which it is first."""
POSTS = (
    "I agree with you", "Please tell me more", "See you next week", "Have a nice day", "This is so funny",
    "I will try that", "Can you help me", "Welcome to the group", "That is great news", "Let us meet soon",
    "You are right", "I found the answer", "It was a good day", "Do not give up", "I have the same one",
    "What a lovely picture", "Call me next week", "We should talk about it", "My answer is yes", "I am not so sure",
)  # fmt: skip
"""What tasks ask to write, as comment, message or text; no comment of the base data says the same."""
