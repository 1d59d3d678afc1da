"""The speakers' sentences and the questions of the made-up conversations."""
# ruff: noqa: E501 - tables

NAMES = ("Anna", "Boris", "Chen", "Dalia", "Emeka", "Farah", "Goran", "Hana", "Ivo", "Jun", "Kofi", "Lena", "Malik")
SURNAMES = (
    "Okonkwo", "Vandermeer", "Szczepański", "Ibarra", "Thorvald", "Quillfeather", "Nakagawa", "Abernathy", "Dragomir",
    "Eltahawy", "Fitzwilliam", "Mbeki", "Castellanos", "Wrenfield",
)  # fmt: skip
PARAPHRASES = (
    ("I finally picked up a second-hand kayak on the weekend.", "What vessel did {who} purchase?", "kayak"),
    ("The doctor says my iron is far too low, so it's lentils every day.", "What health problem does {who} have?", "iron"),
    ("We tore out the old bathtub and put in a walk-in shower.", "How did {who} renovate the bathroom?", "shower"),
    ("My boss handed me the keys of the whole Leeds branch.", "What promotion was {who} given at work?", "Leeds branch"),
    ("I spend every free evening carving little owls out of limewood.", "Which craft does {who} do to relax?", "carving"),
    ("Turns out I can't have milk any more, it upsets my stomach.", "What food intolerance was found?", "milk"),
    ("We got the mortgage, we pick up the keys on Friday.", "What large purchase did {who} complete?", "a home"),
    ("My grandmother's ring slipped off in the lake and was never seen again.", "Which heirloom was lost?", "ring"),
    ("I ran the whole forty-two kilometres without stopping once.", "What sporting feat did {who} achieve?", "marathon"),
    ("The kids talked me into getting a tortoise.", "Which animal joined the household of {who}?", "tortoise"),
    ("I gave up coffee, only peppermint infusions from here on.", "What does {who} drink in place of caffeine?", "mint"),
    ("I'm terrified of being up on ladders, my knees just lock.", "What is {who} afraid of?", "heights"),
    ("They want me to speak about bridges in front of six hundred people.", "What presentation is planned?", "bridges"),
    ("Our car gave up the ghost on the motorway, smoke everywhere.", "What happened to the vehicle of {who}?", "broke down"),
)  # fmt: skip
PEOPLE = (
    ("The plumber who fixed it all was called {name}.", "What trade is {name} in?"),
    ("Old Mrs {name} upstairs keeps bees on the roof.", "What does {name} keep?"),
    ("Our new physics teacher is a certain Mr {name}.", "Which subject does {name} teach?"),
    ("I bought it from a dealer named {name}, down by the canal.", "Where is the shop of {name}?"),
    ("Doctor {name} will do the operation on my shoulder.", "Which operation will {name} do?"),
    ("Our band found a drummer, {name}, who used to play in Oslo.", "What instrument does {name} play?"),
)
TOPICS = (
    (("I'm allergic to {value}.", "Careful, {value} makes my throat swell."), "What is {who} allergic to?",
     ("walnuts", "shellfish", "sesame", "kiwi fruit")),
    (("My sister lives in {value}.", "I visit my sister in {value} every year."), "Where does the sister of {who} live?",
     ("Porto", "Tallinn", "Galway", "Lviv")),
    (("I work as a {value}.", "Being a {value} pays the rent."), "What does {who} do for a living?",
     ("surveyor", "midwife", "typesetter", "gardener")),
    (("My favourite film is {value}.", "I could watch {value} every night."), "Which film does {who} like best?",
     ("Paddington", "Stalker", "Amélie", "Jaws")),
    (("I'm learning {value}.", "My {value} lessons are going well."), "Which language is {who} learning?",
     ("Basque", "Korean", "Welsh", "Finnish")),
    (("My birthday is in {value}.", "I turn a year older in {value}."), "When is the birthday of {who}?",
     ("early spring", "midsummer", "the week of the carnival", "the darkest week of winter")),
)  # fmt: skip
BESIDE = (
    ("What did you call the puppy in the end?", "Biscuit, after granddad's boat.", "What is the name of the puppy of {who}?"),
    ("How much did they ask for the old van?", "Nine hundred, and he would not budge.", "How much was the van?"),
    ("Which instrument did you choose for the school orchestra?", "The bassoon! Nobody else wanted it.",
     "Which instrument did {who} choose for the orchestra?"),
    ("Where will the wedding be?", "In my aunt's vineyard, under the big oak.", "Where is the wedding to be held?"),
    ("Who won the chess tournament at the club?", "That quiet girl from the bakery, would you believe it.",
     "Who won the chess tournament?"),
    ("What colour are you painting the nursery?", "A sort of dusty apricot.", "What colour is the nursery of {who}?"),
    ("When does your flight to Lisbon leave?", "Far too early, ten to six.", "When does the flight of {who} to Lisbon leave?"),
    ("What was wrong with the boiler?", "A mouse had built a nest in the vent.", "What was the matter with the boiler?"),
)  # fmt: skip
MONTHLY = (
    (("At the pottery class I made a {value}.", "Came home from pottery with a {value}."),
     "What did {who} make at the pottery class {when}?", ("bowl", "teapot", "candlestick", "fish dish", "mask", "vase")),
    (("The book club read {value} this time.", "For the book club I finished {value}."),
     "What did the book club of {who} read {when}?",
     ("Middlemarch", "Dracula", "Kim", "Emma", "Beloved", "Solaris")),
    (("On our hike we got as far as {value}.", "We went hiking and reached {value}."),
     "How far did {who} get on the hike {when}?",
     ("the chapel", "the waterfall", "the upper hut", "the quarry", "the border stone", "the ridge")),
    (("I cooked {value} for the neighbours.", "The neighbours came, I made {value}."),
     "What did {who} cook for the neighbours {when}?",
     ("moussaka", "ramen", "goulash", "paella", "borscht", "dumplings")),
)  # fmt: skip
CHANGING = (
    (("I live in {value}.", "My place is in {value}.", "I've settled in {value}."), "Where does {who} live now?",
     ("Lyon", "Ghent", "Bergen", "Turin", "Graz")),
    (("I drive a {value}.", "I've got a {value} for the commute.", "The {value} is my car."),
     "Which car does {who} currently drive?", ("Fiesta", "Zoe", "Berlingo", "Yaris", "Octavia")),
    (("I work for {value}.", "{value} pays my salary.", "I'm employed at {value}."),
     "Which employer does {who} work for now?", ("the harbour office", "Nordlys", "the museum", "Bright & Sons")),
    (("My phone number ends in {value}.", "You can reach me on the number ending {value}.", "New SIM, ends in {value}."),
     "What is the current phone number of {who}?", ("442", "919", "730", "118")),
)  # fmt: skip
APART = (
    ("I collect enamel signs from railway stations.", "what does {who} collect"),
    ("I sing tenor in the cathedral choir.", "which voice does {who} sing"),
    ("I broke my wrist falling off a swing.", "how did {who} break a wrist"),
    ("We spent the honeymoon on a houseboat.", "where did {who} spend the honeymoon"),
    ("I keep the spare key under the blue flowerpot.", "where is the spare key of {who}"),
    ("I owe my cousin three hundred crowns.", "how much does {who} owe the cousin"),
    ("I dropped out of medical school in the third year.", "what did {who} drop out of"),
    ("My first job was selling umbrellas at the market.", "what was the first job of {who}"),
)
CHAT_TOPICS = (
    "the weather", "that new bakery", "the traffic", "the football", "my garden", "the neighbours", "the school fair",
    "the film last night", "the pottery class", "the book club", "the wedding", "the car", "the flight", "the boiler",
    "the choir", "my sister", "the museum", "the doctor", "the hike", "the puppy", "work", "the phone", "the market",
)  # fmt: skip
OPENINGS = (
    "{name}, I keep thinking about {topic} these days.", "Honestly, {topic} has been wearing me out.",
    "Did you hear anything more about {topic}?", "We should talk about {topic} some time, {name}.",
    "I had the strangest dream about {topic}.", "Everybody at home is talking about {topic}.",
    "Can you believe how much {topic} costs us?", "I was late again because of {topic}.",
)  # fmt: skip
REPLIES = (
    "Oh, tell me all about it, {name}!", "I know, {topic} never gets easier.", "Ha, that is so like you.",
    "Let us leave {topic} for another day.", "I would love to hear more when we meet.", "Same here, to be honest.",
    "You always say that, {name}.", "Well, {topic} was never my strong side.", "That sounds lovely, keep me posted.",
)  # fmt: skip
