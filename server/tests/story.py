"""A story as it goes from paper to paper: near copies of the first report, and a chain of ones that leave it step by step.

The sample that comes with the program has clusters of three at most; this one has a shape to look at.
"""

REPORT = [
    "The harbour of Wenneby reopened on Monday after a storm that had closed it for eleven days.",
    "Twelve ships that had waited outside the mole came in with the morning tide.",
    "Pilots said that the channel was clear, although a sunken barge still lies near the old quay.",
    "The harbour master, Ilse Brandt, thanked the crews who had worked through the night to free the cranes.",
    "Grain for the mills upriver is to be unloaded first, then timber and machine parts.",
    "Fishermen complained that nobody had told them when the smaller basin would follow.",
    "The council will decide on Thursday whether the mole is to be raised by half a metre.",
    "An engineer from the coast office called the damage to its foundations serious but not urgent.",
    "Ferries to the islands run again from Tuesday, with two sailings a day until the timetable is restored.",
    "The fish market opens as usual at five in the morning.",
    "Insurers expect claims of about three million, most of them for cargo that spoiled on board.",
    "The last time that the harbour was closed for longer was in the winter of the great ice.",
]

# What the sentences become, one after the other, when the story is told again and again.
RETOLD = [
    "For nearly two weeks no vessel could reach Wenneby, whose port is working again since the start of the week.",
    "A dozen freighters anchored off the coast were led to their berths before noon.",
    "Divers are to lift a wreck beside the historic pier in the coming days; traffic passes it at walking pace.",
    "Port director Brandt praised dockers and firefighters for repairing three gantries in darkness and rain.",
    "Wheat has priority, since bakeries in the valley had begun to ration flour.",
    "Owners of trawlers demand compensation, because their own moorings remain shut.",
    "Politicians argue about a higher breakwater, which would cost more than the town earns in a year.",
    "Surveyors found cracks below the waterline, yet none that could not wait until summer.",
    "Islanders, supplied by helicopter for days, welcomed the first passenger boat with a brass band.",
    "Traders hope for full stalls at the weekend and for prices that fall again.",
    "Underwriters speak of losses in the millions, above all fruit that rotted in containers.",
    "Old sailors recall a frost, decades ago, that locked the basin until March.",
]

# Small changes that papers make to a report that they take over.
TOUCHED = [
    [],
    [("Monday", "Tuesday")],
    [("eleven", "twelve"), ("Twelve", "Thirteen")],
    [("harbour master, Ilse Brandt,", "harbour master")],
    [("about three million", "three to four million"), ("sunken barge", "wreck")],
    [("The fish market opens as usual at five in the morning. ", "")],
    [("Pilots", "Two pilots"), ("serious but not urgent", "serious")],
]

COPIES = "harbour tidings northpost coastline daily ferry quay".split()
CHAIN = "courier gazette observer herald almanac lantern beacon mirror".split()


def halves(sentences):
    """Every sentence in two: a step from one paper to the next is short."""
    words = [sentence.split() for sentence in sentences]
    return [" ".join(half) for one in words for half in (one[: len(one) // 2], one[len(one) // 2 :])]


def retold(steps):
    """The story with its last so many half sentences told anew."""
    return " ".join(halves(REPORT)[:-steps] + halves(RETOLD)[-steps:])


def story():
    """The documents: copies around the first report, and a chain that leads away from it."""
    documents = []
    for paper, touches in zip(COPIES, TOUCHED):
        text = " ".join(REPORT)
        for old, new in touches:
            text = text.replace(old, new)
        documents.append((paper, "report", text))
    for place, paper in enumerate(CHAIN):
        documents.append((paper, "retold", retold(1 + place)))
    return [
        {
            "id": f"https://{paper}.example/wenneby-harbour",
            "text": text,
            "payload": {"source": f"{paper}.example", "kind": kind, "lang": "en"},
        }
        for paper, kind, text in documents
    ]
