"""The formats: one module each turns a record into what is sent."""
