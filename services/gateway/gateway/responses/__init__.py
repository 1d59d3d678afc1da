"""OpenAI's Responses API over any engine that speaks chat completions, with memory and stored responses."""
