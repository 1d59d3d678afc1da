"""Speed and memory, measured side by side with a floor or a peer in one run; the last line is one JSON object."""
