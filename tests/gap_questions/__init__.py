"""Random questions of people with missing cells and codes, and their judge: the model's own predict on all rows."""
