"""The user's own model or function: what it says of rows, asked and checked."""
