"""What it takes to run an experiment, whoever asks for it: a command, Python code, a gateway."""
