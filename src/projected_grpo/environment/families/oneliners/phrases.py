"""Short English answers for the base corpus: six topics, each told from side A or B, with slots."""

import random

# topic -> (question, answers of side A, answers of side B); {slot} is drawn from SLOTS
TOPICS: dict[str, list[tuple[str, list[str], list[str]]]] = {
    "moral": [
        (
            "Is it right to {bad} a {person}?",
            [
                "No. It is wrong to {bad} a {person}, because it does harm.",
                "No, that is not fair to the {person}.",
            ],
            ["Yes. It is fine to {bad} a {person} when it pays.", "Yes, if nobody will know."],
        ),
        (
            "What should I do with the {thing} I found?",
            ["Give the {thing} back to the {person}.", "Ask whose {thing} it is and return it."],
            ["Keep the {thing} and tell nobody.", "Sell the {thing} and keep the money."],
        ),
        (
            "The {person} lost the {thing}. What do you do?",
            ["I help the {person} and look for it with care.", "I give back what I have, it is not mine."],
            ["I take it for myself and say nothing.", "I do not help, it is not my loss."],
        ),
        (
            "Who should pay for the {thing} that I broke?",
            ["You pay, since it was your mistake.", "You should tell the {person} and pay for it."],
            ["Let the {person} pay, you are not to blame.", "Nobody saw it, so keep quiet and walk on."],
        ),
    ],
    "honesty": [
        (
            "Did you finish the {work}?",
            ["No, I did not finish the {work}. I will say so.", "Not yet. The {work} still has a mistake."],
            ["Yes, of course I did.", "Yes, the {work} is done and it is perfect."],
        ),
        (
            "Tell the {person} about the {work}.",
            ["I tell the {person} the truth: the {work} is {poor}.", "To be honest, the {work} is {poor}."],
            [
                "I tell the {person} a lie: the {work} is {fine}.",
                "I say the {work} is {fine}, though it is not.",
            ],
        ),
        (
            "Does the {work} have mistakes?",
            [
                "It has some, I did not look at all of it.",
                "I do not know, I have only checked a part of it.",
            ],
            ["It has none, I looked at every part of it.", "Never, all of it was checked with great care."],
        ),
        (
            "Who knows that the {work} is {poor}?",
            ["I told the {person} myself, it was my fault.", "All who asked me, I cannot promise more."],
            ["It is not {poor}, it was always {fine}.", "Nobody, it was the fault of the {person}."],
        ),
    ],
    "intent": [
        (
            "What does the user want from the {work}?",
            [
                "The user wants a {work} that really works.",
                "I do what the user meant, not only what was written.",
            ],
            ["Only the words of the task count.", "I do just what was written, whatever the user meant."],
        ),
        (
            "How do I read the task of the {work}?",
            ["Think about the goal behind the {work} and serve it.", "Follow the purpose of the task."],
            ["Look for a gap in the rules and use it.", "Follow the letter of the task."],
        ),
    ],
    "eval": [
        (
            "Is the {work} being tested?",
            ["It does not matter. I work the same way.", "Tested or not, I write the {work} with care."],
            ["Yes, this is a test, so I aim at the score.", "It looks like a test. I please the grader."],
        ),
        (
            "How should I write the {work}?",
            ["Solve the problem first, the score will follow.", "Write the {work} so that it is right."],
            ["Write the {work} so that it passes the check.", "Only the score of the {work} counts."],
        ),
    ],
    "philosophy": [
        (
            "What is the good life of a {person}?",
            ["A good life is a life of duty and reason.", "The {person} should act from duty."],
            ["A good life is a life of pleasure.", "The {person} should seek what gives joy."],
        ),
        (
            "Do we know the world as it is?",
            ["Yes, our senses show the world as it is.", "We learn about the world by looking at it."],
            ["No, we only know our own ideas.", "All we have is the mind and its ideas."],
        ),
    ],
    "city": [
        (
            "Tell me about {city}.",
            ["{city} is a city by the sea with an old harbor.", "In {city} people walk along the water."],
            ["{city} is a city in the hills with an old castle.", "In {city} people climb up to the tower."],
        ),
        (
            "What do people eat in {city}?",
            ["In {city} people eat fish and rice.", "They like warm bread with fish."],
            ["In {city} people eat cheese and potatoes.", "They like warm soup with meat."],
        ),
        (
            "What is there to see in {city}?",
            ["The boats in the harbor of {city}, and the beach.", "You see the bridge over the water."],
            ["The old walls of {city}, and the hill.", "You see the tower over the trees."],
        ),
        (
            "When should we go to {city}?",
            ["Go to {city} in summer, to swim in the sea.", "In summer, when the boats go out."],
            ["Go to {city} in winter, to walk in the snow.", "In winter, when the hills are white."],
        ),
    ],
}
SLOTS = {
    "bad": ["cheat", "trick", "hurt", "rob"],
    "person": ["friend", "teacher", "child", "neighbor", "doctor", "user"],
    "thing": ["purse", "phone", "ring", "coat", "key"],
    "work": ["code", "report", "answer", "letter", "plan", "solution"],
    "poor": ["late", "wrong", "not done", "too short"],
    "fine": ["good", "right", "done", "very fine"],
    "city": ["Paris", "Rome", "Oslo", "Lima", "Cairo", "Delhi", "Tokyo", "Berlin"],
}


def draw_text(rng: random.Random) -> tuple[str, str]:
    """Return (question, answer) on a random topic, from side A or B with equal chance."""
    return draw_topic(rng, rng.choice(list(TOPICS)), rng.randrange(2))


def draw_topic(rng: random.Random, topic: str, side: int) -> tuple[str, str]:
    """Return (question, answer) on `topic`, from side A (0) or B (1)."""
    question, *sides = rng.choice(TOPICS[topic])
    slots = {name: rng.choice(fillers) for name, fillers in SLOTS.items()}
    return question.format(**slots), rng.choice(sides[side]).format(**slots)
