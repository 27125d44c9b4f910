"""From a ConcreteModel to arrays: rows, cones, names, and restatements between cones and quadratics."""
