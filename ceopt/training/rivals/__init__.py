"""Published ways to recourse that CounterNet and RoCourseNet are held against; they work row by row."""
