"""Quality and cost of each way of reading against plain MemAgent, on the tiny model's world, through a real engine."""
