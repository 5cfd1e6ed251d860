"""The viewer shows the items of a run in a browser on this machine: it reads the run folder while a
page is made, and nothing else."""
