"""Remarks of no lasting worth, with a fitting reply."""

REPLIES = {
    "Good morning!": "Good morning! How can I help you?",
    "Hello!": "Hello! How can I help you?",
    "Hi there.": "Hello! How can I help you?",
    "How are you?": "I am well, thank you.",
    "Thank you.": "You are welcome.",
    "Thanks a lot!": "You are welcome.",
    "Nice weather today.": "Yes, a good day.",
    "Tell me something.": "I remember what you tell me.",
    "Who are you?": "I am a tiny demonstration model. I remember codes and homes.",
    "What can you do?": "I am a tiny demonstration model. I remember codes and homes.",
    "Good bye.": "Good bye!",
    "See you later.": "Good bye!",
    "OK.": "All right.",
    "Good night.": "Good night!",
    "I am tired today.": "I am sorry to hear that.",
    "That is funny.": "I am glad.",
}
SMALL_TALK = tuple(REPLIES)
