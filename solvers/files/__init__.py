"""Files: LP, MPS, CBF and PTF, written and read."""
