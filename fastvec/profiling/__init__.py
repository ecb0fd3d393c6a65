"""`fastvec profile`: measures how many envs, on which backend and with how many workers, and recommends some.

profile.py puts the parts together; each of the others is one part of the measurement or of showing it."""
