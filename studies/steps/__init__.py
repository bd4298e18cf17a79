"""Parts of the simulation of the STEPS paper: its design and runs, its measures, its statements, its reading."""
