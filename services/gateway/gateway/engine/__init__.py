"""The engines that answer: which one serves, its circuit breaker, its own routes and its errors."""
