"""From a captured graph to running programs: compile, functions, shared variables, schedule, memory, devices."""
