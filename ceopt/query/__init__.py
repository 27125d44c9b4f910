"""One query: the model and settings made ready, a program built and solved, a point made an answer."""
