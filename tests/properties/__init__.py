"""Properties of the Core, searched for counterexamples by hypothesis."""
