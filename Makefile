# make test   sets up .venv from the lock file and runs every check
# make run    sets up .venv and runs the decoder on the sample packets
# make help   lists the rest
