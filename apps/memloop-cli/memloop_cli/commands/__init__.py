"""One module per thing that a person does at the command line."""
