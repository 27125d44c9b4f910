"""The search for a person's answers: solve, check, repair, and again for the next one."""
