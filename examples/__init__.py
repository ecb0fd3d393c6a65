"""Programs that use fastvec, each a file to read from top to bottom; installed as ``fastvec.examples``."""
