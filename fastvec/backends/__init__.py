"""Where lanes that are ordinary Python envs are stepped: in this process, or in workers. Made by ``fastvec.make``.

``serial`` and ``process`` are the backends, ``first_ready`` is the latter in batches, and ``choosing`` is ``auto``;
``ordinary`` is what they share. The loop over such lanes itself is ``fastvec/_lanes.pyx``."""
