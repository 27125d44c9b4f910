"""ReLU networks in a program: bounds of the neurons, and three formulations."""
